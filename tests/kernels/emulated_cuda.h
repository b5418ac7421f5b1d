// Enough of CUDA to run split_k.cu on a CPU: a block is THREADS threads of the operating system, blocks run one by one.
// Slow, and says nothing about a GPU's memory model; it executes every line of the kernel.
#include <barrier>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)

struct Dim { int x, y, z; };
static Dim gridDim;
static thread_local Dim threadIdx, blockIdx;
static std::unique_ptr<std::barrier<>> block_barrier;
static std::vector<std::unique_ptr<std::barrier<>>> warp_barriers;
static float exchange[1024];

using std::min;
inline void __syncthreads() { block_barrier->arrive_and_wait(); }
inline float __shfl_xor_sync(unsigned, float x, int step) {
    auto &warp = *warp_barriers[threadIdx.x / 32];
    exchange[threadIdx.x] = x;
    warp.arrive_and_wait();
    const float other = exchange[threadIdx.x ^ step];
    warp.arrive_and_wait();
    return other;
}

template <typename Kernel> void launch(Dim grid, int threads, Kernel kernel) {
    gridDim = grid;
    block_barrier = std::make_unique<std::barrier<>>(threads);
    warp_barriers.clear();
    for (int i = 0; i < threads / 32; i++) warp_barriers.push_back(std::make_unique<std::barrier<>>(32));
    std::vector<std::thread> running;
    for (int t = 0; t < threads; t++)
        running.emplace_back([=] {
            for (int z = 0; z < grid.z; z++)
                for (int y = 0; y < grid.y; y++)
                    for (int x = 0; x < grid.x; x++) {
                        threadIdx = {t, 0, 0}, blockIdx = {x, y, z};
                        kernel();
                        block_barrier->arrive_and_wait();  // the next block takes over the shared memory
                    }
        });
    for (auto &one : running) one.join();
}

// Decode attention in CUDA C++: the twin of split_k.py, without tensor cores, so that every product can be seen.
//
//   nvcc -cubin -arch=sm_90 -DDTYPE=__nv_bfloat16 -DHEAD_DIM=128 -DGROUP=8 split_k.cu
//
// A block of 128 threads serves one (split, KV head, row). Per tile of keys: copy K to shared memory; each key's dot
// product with all query heads of the group; softmax, one warp per head; then V straight from global memory. K and V
// are read once for all heads.
// Invariant: a slot at or behind its row's length is never read.

#ifdef __CUDACC__  // the tests also run this file on a CPU
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

constexpr int THREADS = 128, WARPS = THREADS / 32;
constexpr float LOG2E = 1.4426950408889634f;

template <typename T> struct alignas(16) Vec {  // what one thread loads at once: 16 bytes
    static constexpr int N = 16 / sizeof(T);
    T x[N];
};

struct Strides { long long q_row, q_head, k_row, k_head, k_token, v_row, v_head, v_token; };  // in elements, 64 bits

__device__ float warp_max(float x) {
    for (int step = 16; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ float warp_sum(float x) {
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

template <typename T, int D, int G>  // D: head_dim, G: query heads per KV head
__device__ void split(const T *q, const T *k, const T *v, const int *lengths, float *part, float *lse, float scale,
                      int kv_len, Strides stride) {
    constexpr int VEC = Vec<T>::N, CHUNKS = D / VEC;           // a token's K or V is CHUNKS vectors
    constexpr int TILE = D * sizeof(T) <= 512 ? 64 : 32;       // tokens per tile
    constexpr int SHARERS = THREADS / TILE;                    // threads that share a key's dot products
    constexpr int ROWS = THREADS / CHUNKS;                     // tokens whose V the block reads at once
    constexpr int PAD = 32 / sizeof(T);                        // so that the rows of keys begin in different banks
    __shared__ __align__(16) T keys[TILE][D + PAD];
    __shared__ __align__(16) float queries[G][D];
    __shared__ float weights[G][TILE], top[G], total[G], shrink[G];

    const int t = threadIdx.x, warp = t / 32, lane = t % 32;
    const int split = blockIdx.x, kv_head = blockIdx.y, n_splits = gridDim.x;
    const long long row = blockIdx.z;
    const int length = min(lengths[row], kv_len);
    const int share = ((length + TILE - 1) / TILE + n_splits - 1) / n_splits * TILE;  // whole tiles
    const int begin = split * share, end = min(begin + share, length);
    q += row * stride.q_row + kv_head * G * stride.q_head;
    k += row * stride.k_row + kv_head * stride.k_head;
    v += row * stride.v_row + kv_head * stride.v_head;

    for (int i = t; i < G * D; i += THREADS)
        queries[i / D][i % D] = float(q[i / D * stride.q_head + i % D]) * scale * LOG2E;
    for (int g = t; g < G; g += THREADS) top[g] = -INFINITY, total[g] = 0;
    float acc[G][VEC] = {};                                    // this thread's part of Σ weight · V:
    const int chunk = t % CHUNKS, first = t / CHUNKS;          // one vector of head_dim, every ROWS-th token

    for (int start = begin; start < end; start += TILE) {
        const int count = min(TILE, end - start);

        __syncthreads();                                       // the last tile is done with
        for (int i = t; i < count * CHUNKS; i += THREADS) {    // neighbouring threads copy neighbouring vectors
            const int n = i / CHUNKS, c = i % CHUNKS * VEC;
            *(Vec<T> *)&keys[n][c] = *(const Vec<T> *)(k + (start + n) * stride.k_token + c);
        }
        __syncthreads();

        const int n = t / SHARERS;                             // scores: SHARERS threads per token, all heads at once
        float score[G] = {};
        if (n < count)
            for (int c = t % SHARERS * VEC; c < D; c += SHARERS * VEC) {
                const Vec<T> key = *(const Vec<T> *)&keys[n][c];
                for (int i = 0; i < VEC; i++) {
                    const float x = float(key.x[i]);
                    for (int g = 0; g < G; g++) score[g] += queries[g][c + i] * x;
                }
            }
        for (int g = 0; g < G; g++) {
            for (int step = 1; step < SHARERS; step *= 2) score[g] += __shfl_xor_sync(~0u, score[g], step);
            if (t % SHARERS == 0) weights[g][n] = n < count ? score[g] : -INFINITY;
        }
        __syncthreads();

        for (int g = warp; g < G; g += WARPS) {                // softmax, carried on from tile to tile
            float higher = top[g], sum = 0;
            for (int n = lane; n < TILE; n += 32) higher = fmaxf(higher, weights[g][n]);
            higher = warp_max(higher);
            for (int n = lane; n < TILE; n += 32) sum += weights[g][n] = exp2f(weights[g][n] - higher);
            sum = warp_sum(sum);
            if (lane == 0) {
                shrink[g] = exp2f(top[g] - higher);            // what was summed under the old maximum
                total[g] = total[g] * shrink[g] + sum;
                top[g] = higher;
            }
        }
        __syncthreads();

        for (int g = 0; g < G; g++)
            for (int i = 0; i < VEC; i++) acc[g][i] *= shrink[g];
        if (first < ROWS)
            for (int n = first; n < count; n += ROWS) {
                const Vec<T> value = *(const Vec<T> *)(v + (start + n) * stride.v_token + chunk * VEC);
                for (int g = 0; g < G; g++)
                    for (int i = 0; i < VEC; i++) acc[g][i] += weights[g][n] * float(value.x[i]);
            }
    }

    float(*sum)[D] = queries;                                  // not needed as queries any more
    for (int r = 0; r < ROWS; r++) {                           // in a fixed order, so that equal input gives equal bits
        __syncthreads();
        if (first == r)
            for (int g = 0; g < G; g++)
                for (int i = 0; i < VEC; i++) sum[g][chunk * VEC + i] = acc[g][i] + (r ? sum[g][chunk * VEC + i] : 0);
    }
    __syncthreads();
    const long long head = (row * gridDim.y + kv_head) * G;    // an empty split gives 0 and −∞, which is the weight 0
    for (int i = t; i < G * D; i += THREADS)
        part[((head + i / D) * n_splits + split) * D + i % D] = begin < end ? sum[i / D][i % D] / total[i / D] : 0;
    for (int g = t; g < G; g += THREADS)
        lse[(head + g) * n_splits + split] = begin < end ? (top[g] + log2f(total[g])) / LOG2E : -INFINITY;
}

extern "C" __global__ void __launch_bounds__(THREADS)
split_k(const DTYPE *q, const DTYPE *k, const DTYPE *v, const int *lengths, float *part, float *lse, float scale,
        int kv_len, Strides stride) {
    split<DTYPE, HEAD_DIM, GROUP>(q, k, v, lengths, part, lse, scale, kv_len, stride);
}

// One block per (row, head), one thread per element: out = Σ_s softmax_s(lse) part[s].
extern "C" __global__ void __launch_bounds__(HEAD_DIM)
merge_splits(const float *part, const float *lse, DTYPE *out, int n_splits) {
    const long long head = blockIdx.x;
    const int d = threadIdx.x;
    float top = -INFINITY, total = 0, acc = 0;
    for (int s = 0; s < n_splits; s++) top = fmaxf(top, lse[head * n_splits + s]);
    for (int s = 0; s < n_splits && top > -INFINITY; s++) {
        const float weight = exp2f((lse[head * n_splits + s] - top) * LOG2E);
        total += weight;
        acc += weight * part[(head * n_splits + s) * HEAD_DIM + d];
    }
    out[head * HEAD_DIM + d] = DTYPE(total > 0 ? acc / total : 0);
}

// Both kernels of split_k.cu as functions that Python can call. DTYPE is float, or _Float16 where g++ has it.
#include "emulated_cuda.h"
#include "../../kvlib/kernels/split_k.cu"

extern "C" void run_split(int n_splits, int n_kv_heads, int batch, const DTYPE *q, const DTYPE *k, const DTYPE *v,
                          const int *lengths, float *part, float *lse, float scale, int kv_len, const Strides *stride) {
    launch({n_splits, n_kv_heads, batch}, THREADS,
           [=] { split_k(q, k, v, lengths, part, lse, scale, kv_len, *stride); });
}

extern "C" void run_merge(int heads, const float *part, const float *lse, DTYPE *out, int n_splits) {
    launch({heads, 1, 1}, HEAD_DIM, [=] { merge_splits(part, lse, out, n_splits); });
}

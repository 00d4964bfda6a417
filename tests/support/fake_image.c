/* The libraries of an image as the static checks see them: one source for all of them. VERSION_OF_…: what they say of themselves.
 * ARCH: the GPU that the code in the section .nv_fatbin is for; without it there is no such section. */
#include <stdint.h>

#ifdef VERSION_OF_CUDART
int cudaRuntimeGetVersion(int *version) { *version = VERSION_OF_CUDART; return 0; }
#endif
#ifdef VERSION_OF_CUBLAS
int cublasGetProperty(int which, int *value)
{
    *value = which == 0 ? VERSION_OF_CUBLAS / 10000 : which == 1 ? VERSION_OF_CUBLAS / 100 % 100 : VERSION_OF_CUBLAS % 100;
    return 0;
}
unsigned long cublasLtGetVersion(void) { return VERSION_OF_CUBLAS; }
#endif
#ifdef VERSION_OF_CUDNN
unsigned long cudnnGetVersion(void) { return VERSION_OF_CUDNN; }
int cudnnGraphVersionCheck(void) { return 0; }
int cudnnOpsVersionCheck(void) { return 0; }
int cudnnCnnVersionCheck(void) { return 0; }
int cudnnAdvVersionCheck(void) { return 0; }
#endif
#ifdef VERSION_OF_NCCL
int ncclGetVersion(int *version) { *version = VERSION_OF_NCCL; return 0; }
#endif
#ifdef ARCH
struct fatbin {
    uint32_t magic;
    uint16_t version, header;
    uint64_t length;
    uint16_t kind, unknown;
    uint32_t own;
    uint64_t size;
    uint32_t more[3], arch;
    uint8_t rest[32], code[24];
};
__attribute__((section(".nv_fatbin"), used, aligned(8))) static const struct fatbin code = {
    0xBA55ED50u, 1, 16, 88, 2, 0, 64, 24, {0, 0, 0}, ARCH, {0}, {7}};
#endif

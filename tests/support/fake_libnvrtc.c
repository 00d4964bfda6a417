/* An NVRTC that compiles a source to itself, for tests with the fake libcuda, which takes any image. Compiled with OLD it is
 * NVRTC 10.2, which makes PTX only. */
#include <stdlib.h>
#include <string.h>

#ifdef OLD
int nvrtcVersion(int *major, int *minor) { *major = 10; *minor = 2; return 0; }
#else
int nvrtcVersion(int *major, int *minor) { *major = 12; *minor = 8; return 0; }
int nvrtcGetNumSupportedArchs(int *count) { *count = 3; return 0; }
int nvrtcGetSupportedArchs(int *list) { list[0] = 75; list[1] = 80; list[2] = 90; return 0; }
#endif
int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers, const char *const *texts,
                       const char *const *names)
{
    (void)name, (void)headers, (void)texts, (void)names;
    *program = source ? strdup(source) : 0;
    return source ? 0 : 3;
}
int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    (void)program;
    return count == 1 && !strncmp(options[0], "--gpu-architecture=", 19) ? 0 : 5;
}
int nvrtcDestroyProgram(void **program) { free(*program); *program = 0; return 0; }
int nvrtcGetProgramLogSize(void *program, size_t *size) { (void)program; *size = 1; return 0; }
int nvrtcGetProgramLog(void *program, char *log) { (void)program; *log = 0; return 0; }
static int size(void *program, size_t *bytes) { *bytes = strlen(program); return 0; }
static int code(void *program, char *bytes) { memcpy(bytes, program, strlen(program)); return 0; }
int nvrtcGetPTXSize(void *program, size_t *bytes) { return size(program, bytes); }
int nvrtcGetPTX(void *program, char *bytes) { return code(program, bytes); }
#ifndef OLD
int nvrtcGetCUBINSize(void *program, size_t *bytes) { return size(program, bytes); }
int nvrtcGetCUBIN(void *program, char *bytes) { return code(program, bytes); }
#endif

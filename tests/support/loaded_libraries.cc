// For programs with the address sanitizer: libraries stay loaded until the process ends. What a library leaks would
// else be a leak of an unknown module, which .ci/lsan.supp cannot name.
extern "C" __attribute__((visibility("default"))) int dlclose(void*) noexcept { return 0; }

/* What programs of a node are told of its kernel: the release that the node shows, and else what the machine has. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

__attribute__((visibility("default"))) int uname(struct utsname *told)
{
    if (syscall(SYS_uname, told) != 0)
        return -1;
    memset(told->release, 0, sizeof told->release);
    memcpy(told->release, KERNEL, sizeof KERNEL);
    return 0;
}

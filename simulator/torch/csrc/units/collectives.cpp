// What needs torch's headers of collectives and of Python, as the other unit.
#include "../hccl.cpp"
#include "../hccl_checks.cpp"
#include "../hccl_work.cpp"
#include "../module.cpp"

/* Processors and memory near a card. */
#define _GNU_SOURCE
#include "device.h"

#include <limits.h>
#include <sched.h>
#include <string.h>

#define BITS_PER_WORD (CHAR_BIT * sizeof(unsigned long))

/* Words of a set: processors or memory nodes, as the answer lists them. */
static hlml_return_t words(hlml_device_t device, const char *name, hlml_choice_t scope, unsigned int size,
			   unsigned long *set)
{
	struct answer answer;
	unsigned int index;
	unsigned long long bit;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && (!set || !size))
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "%s %u %u", name, index, scope);
	if (result != HLML_SUCCESS)
		return result;
	memset(set, 0, size * sizeof(*set));
	while (answer_number(&answer, &bit)) {
		if (bit / BITS_PER_WORD >= size)
			return HLML_ERROR_INSUFFICIENT_SIZE;
		set[bit / BITS_PER_WORD] |= 1UL << bit % BITS_PER_WORD;
	}
	return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_cpu_affinity(hlml_device_t device, unsigned int size, unsigned long *set)
{
	return words(device, "processors", 0, size, set);
}

hlml_return_t hlml_device_get_cpu_affinity_within_scope(hlml_device_t device, unsigned int size, unsigned long *set,
							hlml_choice_t scope)
{
	return words(device, "processors", scope, size, set);
}

hlml_return_t hlml_device_get_memory_affinity(hlml_device_t device, unsigned int size, unsigned long *set,
					      hlml_choice_t scope)
{
	return words(device, "memory-nodes", scope, size, set);
}

hlml_return_t hlml_device_set_cpu_affinity(hlml_device_t device)
{
	cpu_set_t set;
	hlml_return_t result =
		words(device, "processors", 0, sizeof(set) / sizeof(unsigned long), (unsigned long *)(void *)&set);

	if (result == HLML_SUCCESS && sched_setaffinity(0, sizeof(set), &set) < 0)
		result = HLML_ERROR_UNKNOWN;
	return result;
}

hlml_return_t hlml_device_clear_cpu_affinity(hlml_device_t device)
{
	unsigned int index;
	cpu_set_t set;
	hlml_return_t result = device_index(device, &index);

	if (result != HLML_SUCCESS)
		return result;
	/* The kernel takes the processors that there are. */
	memset(&set, 0xff, sizeof(set));
	return sched_setaffinity(0, sizeof(set), &set) < 0 ? HLML_ERROR_UNKNOWN : HLML_SUCCESS;
}

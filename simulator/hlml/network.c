/* The ports of a card: which there are, their links, counters and addresses. */
#define _GNU_SOURCE
#include "device.h"

#include <string.h>

#define PORT_WORDS 2
/* The names of port counters lie this far apart. The driver's own length is 32; a program that reads the library of 1.24
 * on a Gaudi 2 steps by two more. For other releases this is UNCONFIRMED. */
#define COUNTER_NAME_LENGTH 34

hlml_return_t hlml_device_get_mac_info(hlml_device_t device, hlml_mac_info_t *info, unsigned int size,
				       unsigned int start, unsigned int *count)
{
	struct answer answer;
	unsigned int index, found = 0;
	unsigned long long id;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && (!info || !count || !size))
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "macs %u %u", index, start);
	if (result != HLML_SUCCESS)
		return result;
	for (; found < size && answer_number(&answer, &id); found++) {
		info[found].id = (int)id;
		for (unsigned int byte = 0; byte < sizeof(info->addr); byte++) {
			unsigned long long value;

			if (!answer_number(&answer, &value))
				return HLML_ERROR_UNKNOWN;
			info[found].addr[byte] = (unsigned char)value;
		}
	}
	*count = found;
	return HLML_SUCCESS;
}

hlml_return_t hlml_get_mac_addr_info(hlml_device_t device, uint64_t *mask, uint64_t *external)
{
	unsigned long long values[2 * PORT_WORDS];
	hlml_return_t result = device_numbers(mask && external ? mask : NULL, device, "ports", values, 2 * PORT_WORDS);

	/* The last word first: the vendor's metric exporter has room for one word each, side by side. */
	for (unsigned int word = PORT_WORDS; result == HLML_SUCCESS && word-- > 0;) {
		mask[word] = values[word];
		external[word] = values[PORT_WORDS + word];
	}
	return result;
}

hlml_return_t hlml_nic_get_link(hlml_device_t device, uint32_t port, bool *up)
{
	unsigned int value;
	hlml_return_t result = device_number_by(device, up ? &value : NULL, "link", port);

	if (result == HLML_SUCCESS)
		*up = value != 0;
	return result;
}

hlml_return_t hlml_nic_get_statistics(hlml_device_t device, hlml_nic_stats_info_t *stats)
{
	struct answer answer;
	unsigned int index;
	uint32_t found = 0;
	const char *name;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && (!stats || !stats->str_buf || !stats->val_buf || !stats->num_of_counters_out))
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "counters %u %u", index, stats->port);
	if (result != HLML_SUCCESS)
		return result;
	while ((name = answer_text(&answer))) {
		char *place = stats->str_buf + (size_t)found * COUNTER_NAME_LENGTH;
		unsigned long long value;

		if (!answer_number(&answer, &value))
			return HLML_ERROR_UNKNOWN;
		memset(place, 0, COUNTER_NAME_LENGTH);
		memcpy(place, name, strnlen(name, COUNTER_NAME_LENGTH - 1));
		stats->val_buf[found++] = value;
	}
	*stats->num_of_counters_out = found;
	return HLML_SUCCESS;
}

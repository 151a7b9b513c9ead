/* The library's life cycle, handles of cards, and answers of one value. */
#include "device.h"

#include <string.h>

/* A handle is the address of its place here: checked without following it. */
static char places[DEVICES_MAX];

hlml_return_t hlml_init(void)
{
	return service_start();
}

hlml_return_t hlml_init_with_flags(unsigned int flags)
{
	(void)flags; /* gohlml switches logs on with 0x6; there is none here */
	return service_start();
}

hlml_return_t hlml_shutdown(void)
{
	return service_stop() ? HLML_SUCCESS : HLML_ERROR_UNINITIALIZED;
}

hlml_device_t device_handle(unsigned int index)
{
	return &places[index];
}

hlml_return_t device_index(hlml_device_t device, unsigned int *index)
{
	uintptr_t place = (uintptr_t)device - (uintptr_t)places;
	hlml_return_t result = service_ready();

	if (result != HLML_SUCCESS)
		return result;
	if (place >= sizeof(places))
		return HLML_ERROR_INVALID_ARGUMENT;
	*index = (unsigned int)place;
	return HLML_SUCCESS;
}

hlml_return_t copy_text(char *to, size_t length, const char *from)
{
	size_t needed = from ? strlen(from) + 1 : 0;

	if (!needed)
		return HLML_ERROR_UNKNOWN;
	if (needed > length)
		return HLML_ERROR_INSUFFICIENT_SIZE;
	memcpy(to, from, needed);
	return HLML_SUCCESS;
}

hlml_return_t text_of(char *text, unsigned int length, const char *name)
{
	struct answer answer;
	hlml_return_t result = service_ready();

	if (result == HLML_SUCCESS && !text)
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "%s", name);
	return result == HLML_SUCCESS ? copy_text(text, length, answer_text(&answer)) : result;
}

hlml_return_t device_text(hlml_device_t device, char *text, unsigned int length, const char *name)
{
	struct answer answer;
	unsigned int index;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && !text)
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "%s %u", name, index);
	return result == HLML_SUCCESS ? copy_text(text, length, answer_text(&answer)) : result;
}

hlml_return_t device_wide(hlml_device_t device, unsigned long long *value, const char *name)
{
	struct answer answer;
	unsigned int index;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && !value)
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "%s %u", name, index);
	if (result == HLML_SUCCESS && !answer_number(&answer, value))
		result = HLML_ERROR_UNKNOWN;
	return result;
}

hlml_return_t device_number(hlml_device_t device, unsigned int *value, const char *name)
{
	unsigned long long wide;
	hlml_return_t result = device_wide(device, value ? &wide : NULL, name);

	if (result == HLML_SUCCESS)
		*value = (unsigned int)wide;
	return result;
}

hlml_return_t device_number_by(hlml_device_t device, unsigned int *value, const char *name, hlml_choice_t choice)
{
	struct answer answer;
	unsigned int index;
	unsigned long long wide;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && !value)
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "%s %u %u", name, index, choice);
	if (result == HLML_SUCCESS && !answer_number(&answer, &wide))
		result = HLML_ERROR_UNKNOWN;
	if (result == HLML_SUCCESS)
		*value = (unsigned int)wide;
	return result;
}

hlml_return_t device_numbers(const void *place, hlml_device_t device, const char *name, unsigned long long *values,
			     unsigned int count)
{
	struct answer answer;
	unsigned int index;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && !place)
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "%s %u", name, index);
	for (unsigned int each = 0; result == HLML_SUCCESS && each < count; each++)
		if (!answer_number(&answer, &values[each]))
			result = HLML_ERROR_UNKNOWN;
	return result;
}

hlml_return_t hlml_device_get_count(unsigned int *count)
{
	struct answer answer;
	unsigned long long wide;
	hlml_return_t result = service_ready();

	if (result == HLML_SUCCESS && !count)
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "count");
	if (result == HLML_SUCCESS && !answer_number(&answer, &wide))
		result = HLML_ERROR_UNKNOWN;
	if (result == HLML_SUCCESS)
		*count = (unsigned int)wide;
	return result;
}

/* Ask for the accelerator index of the card that `key` names. */
static hlml_return_t find(const char *name, const char *key, hlml_device_t *device)
{
	struct answer answer;
	unsigned long long index;
	hlml_return_t result = service_ready();

	if (result == HLML_SUCCESS && (!key || !device))
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "%s %s", name, key);
	if (result == HLML_SUCCESS && (!answer_number(&answer, &index) || index >= DEVICES_MAX))
		result = HLML_ERROR_UNKNOWN;
	if (result == HLML_SUCCESS)
		*device = device_handle((unsigned int)index);
	return result;
}

hlml_return_t hlml_device_get_handle_by_index(unsigned int index, hlml_device_t *device)
{
	char digits[16];
	char *digit = digits + sizeof(digits);

	*--digit = '\0';
	do
		*--digit = (char)('0' + index % 10);
	while (index /= 10);
	return find("by-index", digit, device);
}

hlml_return_t hlml_device_get_handle_by_pci_bus_id(const char *address, hlml_device_t *device)
{
	return find("by-address", address, device);
}

hlml_return_t hlml_device_get_handle_by_UUID(const char *uuid, hlml_device_t *device)
{
	return find("by-uuid", uuid, device);
}

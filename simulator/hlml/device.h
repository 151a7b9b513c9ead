/* Handles, and the shapes of answers that many functions share. */
#ifndef GAUDI3_SIMULATOR_HLML_DEVICE_H
#define GAUDI3_SIMULATOR_HLML_DEVICE_H

#include <stddef.h>

#include "service.h"

/* Minor numbers of accel devices; a board of this simulator has eight. */
#define DEVICES_MAX 64

/* The handle of the card with this accelerator index. */
hlml_device_t device_handle(unsigned int index);

/* Check the library, then the handle: on success `index` is the accelerator index. */
hlml_return_t device_index(hlml_device_t device, unsigned int *index);

/* Answer a question of one text, about the library or a card. */
hlml_return_t text_of(char *text, unsigned int length, const char *name);
hlml_return_t device_text(hlml_device_t device, char *text, unsigned int length, const char *name);

/* Answer a question of one number about a card, with a choice of the caller's. */
hlml_return_t device_number(hlml_device_t device, unsigned int *value, const char *name);
hlml_return_t device_wide(hlml_device_t device, unsigned long long *value, const char *name);
hlml_return_t device_number_by(hlml_device_t device, unsigned int *value, const char *name, hlml_choice_t choice);

/* Answer a question of several numbers; `place` is where the caller wants its result, NULL for nowhere. */
hlml_return_t device_numbers(const void *place, hlml_device_t device, const char *name, unsigned long long *values,
			     unsigned int count);

/* Copy with the closing NUL. */
hlml_return_t copy_text(char *to, size_t length, const char *from);

#endif

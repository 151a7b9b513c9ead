/* The process that answers for the library: it reads the simulated node as hl-smi does. */
#ifndef GAUDI3_SIMULATOR_HLML_SERVICE_H
#define GAUDI3_SIMULATOR_HLML_SERVICE_H

#include "hlml.h"

#define ANSWER_LENGTH 16384

/* One line of tab-separated fields; `next` is where reading goes on. */
struct answer {
	char text[ANSWER_LENGTH];
	char *next;
};

/* Start the process and ask it whether the library can be used. */
hlml_return_t service_start(void);

/* End the process; false when the library was not initialised. */
bool service_stop(void);

/* HLML_SUCCESS when the library is initialised. */
hlml_return_t service_ready(void);

/* Ask one question: a line such as "number 3 minor". The code of the answer is the result, its fields follow. */
hlml_return_t service_ask(struct answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The next field: NULL after the last one. */
const char *answer_text(struct answer *answer);

/* The next field as a number; false where there is none. */
bool answer_number(struct answer *answer, unsigned long long *value);

#endif

/* Sets of events: what happened to a card since it was registered.
 *
 * The answering process counts what happens; a set remembers the counts that its owner has seen, so that nothing
 * between two waits is lost.
 */
#include "device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_EVERY_MS 100

/* The counters of one card, in the order of the answer. */
static const unsigned long long bits[] = {
	HLML_EVENT_CRITICAL_ERR, HLML_EVENT_ECC_DERR,  HLML_EVENT_ECC_SERR,
	HLML_EVENT_DRAM_DERR,	 HLML_EVENT_DRAM_SERR, HLML_EVENT_CLOCK_RATE,
};
#define COUNTERS (sizeof(bits) / sizeof(bits[0]))

struct counts {
	bool known;
	unsigned long long value[COUNTERS];
};

struct event_set {
	struct event_set *next;
	unsigned long long types[DEVICES_MAX]; /* 0: not registered */
	struct counts seen[DEVICES_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event_set *sets;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void on_load(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* The set of this handle, if there is one; the caller holds the lock. */
static struct event_set *find(hlml_event_set_t handle)
{
	for (struct event_set *set = sets; set; set = set->next)
		if (set == handle)
			return set;
	return NULL;
}

static hlml_return_t look(struct counts *now)
{
	struct answer answer;
	unsigned long long index;
	hlml_return_t result = service_ask(&answer, "events");

	memset(now, 0, DEVICES_MAX * sizeof(*now));
	while (result == HLML_SUCCESS && answer_number(&answer, &index)) {
		struct counts ignored;
		struct counts *card = index < DEVICES_MAX ? &now[index] : &ignored;

		for (unsigned int each = 0; each < COUNTERS; each++)
			if (!answer_number(&answer, &card->value[each]))
				return HLML_ERROR_UNKNOWN;
		card->known = true;
	}
	return result;
}

hlml_return_t hlml_event_set_create(hlml_event_set_t *handle)
{
	struct event_set *set;
	hlml_return_t result = service_ready();

	if (result != HLML_SUCCESS)
		return result;
	if (!handle)
		return HLML_ERROR_INVALID_ARGUMENT;
	set = calloc(1, sizeof(*set));
	if (!set)
		return HLML_ERROR_MEMORY;
	pthread_mutex_lock(&lock);
	set->next = sets;
	sets = set;
	pthread_mutex_unlock(&lock);
	*handle = set;
	return HLML_SUCCESS;
}

hlml_return_t hlml_event_set_free(hlml_event_set_t handle)
{
	struct event_set **link;
	struct event_set *set;
	hlml_return_t result = service_ready();

	if (result != HLML_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	for (link = &sets; *link && *link != handle; link = &(*link)->next)
		;
	set = *link;
	if (set)
		*link = set->next;
	pthread_mutex_unlock(&lock);
	free(set);
	return set ? HLML_SUCCESS : HLML_ERROR_INVALID_ARGUMENT;
}

hlml_return_t hlml_device_register_events(hlml_device_t device, unsigned long long types, hlml_event_set_t handle)
{
	struct counts now[DEVICES_MAX];
	struct event_set *set;
	unsigned long long known = 0;
	unsigned int index;
	hlml_return_t result = device_index(device, &index);

	for (unsigned int each = 0; each < COUNTERS; each++)
		known |= bits[each];
	if (result == HLML_SUCCESS && (!types || types & ~known))
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = look(now);
	if (result != HLML_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	set = find(handle);
	if (set) {
		if (!set->types[index])
			set->seen[index] = now[index];
		set->types[index] |= types;
	}
	pthread_mutex_unlock(&lock);
	return set ? HLML_SUCCESS : HLML_ERROR_INVALID_ARGUMENT;
}

/* The first card of the set to which something happened. */
static hlml_return_t collect(hlml_event_set_t handle, hlml_event_data_t *data)
{
	struct counts now[DEVICES_MAX];
	struct event_set *set;
	hlml_return_t result = look(now);

	if (result != HLML_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	set = find(handle);
	result = set ? HLML_ERROR_TIMEOUT : HLML_ERROR_INVALID_ARGUMENT;
	for (unsigned int index = 0; set && index < DEVICES_MAX && result == HLML_ERROR_TIMEOUT; index++) {
		unsigned long long happened = 0;

		if (!set->types[index] || !now[index].known)
			continue;
		for (unsigned int each = 0; each < COUNTERS; each++)
			if (now[index].value[each] > set->seen[index].value[each])
				happened |= bits[each];
		set->seen[index] = now[index];
		happened &= set->types[index];
		if (happened) {
			data->device = device_handle(index);
			data->event_type = happened;
			result = HLML_SUCCESS;
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

hlml_return_t hlml_event_set_wait(hlml_event_set_t handle, hlml_event_data_t *data, unsigned int milliseconds)
{
	long long end = now_ms() + milliseconds;
	hlml_return_t result = service_ready();

	if (result == HLML_SUCCESS && !data)
		result = HLML_ERROR_INVALID_ARGUMENT;
	while (result == HLML_SUCCESS) {
		long long left = end - now_ms();
		struct timespec pause;

		result = collect(handle, data);
		if (result != HLML_ERROR_TIMEOUT || left <= 0)
			return result;
		if (left > LOOK_EVERY_MS)
			left = LOOK_EVERY_MS;
		pause.tv_sec = 0;
		pause.tv_nsec = (long)left * 1000000;
		nanosleep(&pause, NULL);
		result = HLML_SUCCESS;
	}
	return result;
}

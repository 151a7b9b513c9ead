/* Starting, asking and ending the answering process.
 *
 * It is a child that is spawned at hlml_init: /usr/bin/python3 with the node's package, at the other end of a socket.
 * It ends when the socket closes, so also when the program dies. One question is on its way at a time, from whichever
 * thread. After fork the child starts a process of its own when it first asks: the two never share a socket.
 */
#define _GNU_SOURCE
#include "service.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
#define LIBRARY "/usr/lib/gaudi3-simulator"
#define QUESTION_LENGTH 512
#define PATIENCE_MS 30000

static const char PROGRAM[] = "import sys; sys.path.insert(0, sys.argv[1]); "
			      "from gaudi3_simulator_node.hlml import main; sys.exit(main(sys.argv[2]))";

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;
static int line = -1; /* our end of the socket */
static pid_t process = -1;

static void close_line(void)
{
	if (line >= 0)
		close(line);
	line = -1;
}

static void end_process(void)
{
	close_line();
	if (process > 0)
		while (waitpid(process, NULL, 0) < 0 && errno == EINTR)
			;
	process = -1;
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
	close_line();
	process = -1;
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void on_load(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

__attribute__((destructor)) static void on_unload(void)
{
	end_process();
}

/* Spawn the process; the caller holds the lock. */
static bool start_process(void)
{
	const char *root = getenv("GAUDI3_SIMULATOR_ROOT");
	char folder[4096];
	char *arguments[] = { PYTHON, "-IS", "-c", (char *)PROGRAM, folder, HLML_RELEASE, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int ends[2];
	bool started;

	if (snprintf(folder, sizeof(folder), "%s" LIBRARY, root ? root : "") >= (int)sizeof(folder))
		return false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
	posix_spawnattr_init(&attributes);
	/* A process group of its own keeps Ctrl-C of the terminal away from it. */
	posix_spawnattr_setflags(&attributes,
				 POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	started = posix_spawn(&process, PYTHON, &actions, &attributes, arguments, environ) == 0;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	line = ends[0];
	if (!started) {
		process = -1;
		close_line();
	}
	return started;
}

static bool send_all(const char *text, size_t length)
{
	while (length) {
		ssize_t sent = send(line, text, length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		text += sent;
		length -= (size_t)sent;
	}
	return true;
}

static bool receive_line(char *text, size_t size)
{
	size_t length = 0;

	while (length < size) {
		struct pollfd ready = { .fd = line, .events = POLLIN };
		int count = poll(&ready, 1, PATIENCE_MS);
		ssize_t received;

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return false;
		received = recv(line, text + length, size - length, 0);
		if (received < 0 && errno == EINTR)
			continue;
		if (received <= 0)
			return false;
		length += (size_t)received;
		if (text[length - 1] == '\n') {
			text[length - 1] = '\0';
			return true;
		}
	}
	return false;
}

/* Send the question and read its answer; the caller holds the lock. */
static hlml_return_t exchange(struct answer *answer, const char *question)
{
	unsigned long long code;

	/* A second time with a new process, should the first one have been killed. */
	for (int attempt = 0; attempt < 2; attempt++) {
		if (line < 0 && !start_process())
			return HLML_ERROR_UNKNOWN;
		if (send_all(question, strlen(question)) && receive_line(answer->text, sizeof(answer->text))) {
			answer->next = answer->text;
			return answer_number(answer, &code) ? (hlml_return_t)code : HLML_ERROR_UNKNOWN;
		}
		if (process > 0)
			kill(process, SIGKILL);
		end_process();
	}
	return HLML_ERROR_UNKNOWN;
}

hlml_return_t service_start(void)
{
	struct answer answer;
	hlml_return_t result = HLML_ERROR_ALREADY_INITIALIZED;

	pthread_mutex_lock(&lock);
	if (!initialised) {
		result = exchange(&answer, "init\n");
		initialised = result == HLML_SUCCESS;
		if (!initialised)
			end_process();
	}
	pthread_mutex_unlock(&lock);
	return result;
}

bool service_stop(void)
{
	bool was;

	pthread_mutex_lock(&lock);
	was = initialised;
	initialised = false;
	end_process();
	pthread_mutex_unlock(&lock);
	return was;
}

hlml_return_t service_ready(void)
{
	bool ready;

	pthread_mutex_lock(&lock);
	ready = initialised;
	pthread_mutex_unlock(&lock);
	return ready ? HLML_SUCCESS : HLML_ERROR_UNINITIALIZED;
}

hlml_return_t service_ask(struct answer *answer, const char *format, ...)
{
	char question[QUESTION_LENGTH];
	hlml_return_t result;
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(question, sizeof(question) - 1, format, values);
	va_end(values);
	if (length < 0 || length >= (int)sizeof(question) - 1 || strchr(question, '\n'))
		return HLML_ERROR_INVALID_ARGUMENT;
	question[length] = '\n';
	question[length + 1] = '\0';
	pthread_mutex_lock(&lock);
	result = initialised ? exchange(answer, question) : HLML_ERROR_UNINITIALIZED;
	pthread_mutex_unlock(&lock);
	return result;
}

const char *answer_text(struct answer *answer)
{
	char *field = answer->next;
	char *end;

	if (!field)
		return NULL;
	end = strchr(field, '\t');
	if (end)
		*end++ = '\0';
	answer->next = end;
	return field;
}

bool answer_number(struct answer *answer, unsigned long long *value)
{
	const char *digit = answer_text(answer);

	/* Not strtoull: newer C libraries give it a name that older ones lack. */
	if (!digit || !*digit)
		return false;
	for (*value = 0; *digit; digit++) {
		if (*digit < '0' || *digit > '9')
			return false;
		*value = *value * 10 + (unsigned long long)(*digit - '0');
	}
	return true;
}

/* One function for each value of a card, in the order of the header. */
#define _GNU_SOURCE
#include "device.h"

#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define BITS_PER_WORD (CHAR_BIT * sizeof(unsigned long))
#define PORT_WORDS 2
/* The names of port counters lie this far apart. The driver's own length is 32; a program that reads the library of 1.24
 * on a Gaudi 2 steps by two more. For other releases this is UNCONFIRMED. */
#define COUNTER_NAME_LENGTH 34

hlml_return_t hlml_device_get_name(hlml_device_t device, char *name, unsigned int length)
{
	return device_text(device, name, length, "name");
}

hlml_return_t hlml_device_get_pci_info(hlml_device_t device, hlml_pci_info_t *pci)
{
	struct answer answer;
	unsigned int index;
	unsigned long long bus, place, domain, id, revision, subsystem;
	hlml_pci_info_t filled;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && !pci)
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "pci %u", index);
	if (result != HLML_SUCCESS)
		return result;
	memset(&filled, 0, sizeof(filled));
	if (!answer_number(&answer, &domain) || !answer_number(&answer, &bus) || !answer_number(&answer, &place) ||
	    !answer_number(&answer, &id) || !answer_number(&answer, &revision) || !answer_number(&answer, &subsystem))
		return HLML_ERROR_UNKNOWN;
	filled.domain = (unsigned int)domain;
	filled.bus = (unsigned int)bus;
	filled.device = (unsigned int)place;
	filled.pci_device_id = (unsigned int)id;
	filled.pci_rev = (unsigned int)revision;
#if HLML_API >= 118
	filled.pci_subsys_id = (unsigned int)subsystem;
#endif
	if (copy_text(filled.bus_id, sizeof(filled.bus_id), answer_text(&answer)) ||
	    copy_text(filled.caps.link_speed, HLML_LINK_LENGTH, answer_text(&answer)) ||
	    copy_text(filled.caps.link_width, HLML_LINK_LENGTH, answer_text(&answer)) ||
	    copy_text(filled.caps.link_max_speed, HLML_LINK_LENGTH, answer_text(&answer)) ||
	    copy_text(filled.caps.link_max_width, HLML_LINK_LENGTH, answer_text(&answer)))
		return HLML_ERROR_UNKNOWN;
	*pci = filled;
	return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_clock_info(hlml_device_t device, hlml_choice_t type, unsigned int *clock)
{
	return device_number_by(device, clock, "clock", type);
}

hlml_return_t hlml_device_get_max_clock_info(hlml_device_t device, hlml_choice_t type, unsigned int *clock)
{
	return device_number_by(device, clock, "clock-max", type);
}

#if HLML_API >= 118
hlml_return_t hlml_device_get_clock_limit_info(hlml_device_t device, hlml_choice_t type, unsigned int *clock)
{
	return device_number_by(device, clock, "clock-limit", type);
}
#endif

/* Two or three numbers of one answer. */
static hlml_return_t numbers(hlml_device_t device, const char *name, unsigned long long *values, unsigned int count)
{
	struct answer answer;
	unsigned int index;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "%s %u", name, index);
	for (unsigned int each = 0; result == HLML_SUCCESS && each < count; each++)
		if (!answer_number(&answer, &values[each]))
			result = HLML_ERROR_UNKNOWN;
	return result;
}

/* The same, where the caller has to give a place for the result. */
static hlml_return_t numbers_into(const void *place, hlml_device_t device, const char *name, unsigned long long *values,
				  unsigned int count)
{
	unsigned int index;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && !place)
		result = HLML_ERROR_INVALID_ARGUMENT;
	return result == HLML_SUCCESS ? numbers(device, name, values, count) : result;
}

hlml_return_t hlml_device_get_utilization_rates(hlml_device_t device, hlml_utilization_t *utilization)
{
	unsigned long long values[2];
	hlml_return_t result = numbers_into(utilization, device, "utilization", values, 2);

	if (result == HLML_SUCCESS) {
		utilization->aip = (unsigned int)values[0];
#if HLML_API >= 119
		utilization->memory = (unsigned int)values[1];
#endif
	}
	return result;
}

#if HLML_API >= 119
hlml_return_t hlml_device_get_process_utilization(hlml_device_t device, hlml_process_utilization_sample_t *sample)
{
	return device_number(device, sample ? &sample->aip_util : NULL, "process-utilization");
}
#endif

hlml_return_t hlml_device_get_memory_info(hlml_device_t device, hlml_memory_t *memory)
{
	unsigned long long values[3];
	hlml_return_t result = numbers_into(memory, device, "memory", values, 3);

	if (result == HLML_SUCCESS) {
		memory->free = values[0];
		memory->total = values[1];
		memory->used = values[2];
	}
	return result;
}

hlml_return_t hlml_device_get_temperature(hlml_device_t device, hlml_choice_t sensor, unsigned int *celsius)
{
	return device_number_by(device, celsius, "temperature", sensor);
}

hlml_return_t hlml_device_get_temperature_threshold(hlml_device_t device, hlml_choice_t type, unsigned int *celsius)
{
	return device_number_by(device, celsius, "temperature-threshold", type);
}

hlml_return_t hlml_device_get_persistence_mode(hlml_device_t device, hlml_choice_t *mode)
{
	return device_number(device, mode, "unsupported");
}

hlml_return_t hlml_device_get_performance_state(hlml_device_t device, hlml_choice_t *state)
{
	return device_number(device, state, "performance-state");
}

#if HLML_API >= 120
hlml_return_t hlml_device_get_supported_performance_states(hlml_device_t device, hlml_choice_t *states,
							   unsigned int size)
{
	const hlml_choice_t unknown = 32;
	hlml_choice_t current;
	hlml_return_t result = device_number(device, states ? &current : NULL, "performance-state");

	if (result == HLML_SUCCESS && !size)
		result = HLML_ERROR_INSUFFICIENT_SIZE;
	if (result != HLML_SUCCESS)
		return result;
	for (unsigned int each = 0; each < size; each++)
		states[each] = each ? unknown : current;
	return HLML_SUCCESS;
}
#endif

hlml_return_t hlml_device_get_power_usage(hlml_device_t device, unsigned int *milliwatts)
{
	return device_number(device, milliwatts, "power");
}

hlml_return_t hlml_device_get_power_management_default_limit(hlml_device_t device, unsigned int *milliwatts)
{
	return device_number(device, milliwatts, "power-default-limit");
}

#if HLML_API >= 118
hlml_return_t hlml_device_get_power_management_mode(hlml_device_t device, hlml_choice_t *mode)
{
	return device_number(device, mode, "power-mode");
}

hlml_return_t hlml_device_get_power_management_limit(hlml_device_t device, unsigned int *milliwatts)
{
	return device_number(device, milliwatts, "power-limit");
}
#endif

#if HLML_API >= 119
hlml_return_t hlml_device_set_power_management_limit(hlml_device_t device, unsigned int milliwatts)
{
	unsigned int accepted;

	return device_number_by(device, &accepted, "set-power-limit", milliwatts);
}
#endif

#if HLML_API >= 121
hlml_return_t hlml_device_get_power_management_limit_constraints(hlml_device_t device, unsigned int *low,
								 unsigned int *high)
{
	unsigned long long values[2];
	hlml_return_t result = numbers_into(low && high ? low : NULL, device, "power-limit-range", values, 2);

	if (result == HLML_SUCCESS) {
		*low = (unsigned int)values[0];
		*high = (unsigned int)values[1];
	}
	return result;
}
#endif

hlml_return_t hlml_device_get_ecc_mode(hlml_device_t device, hlml_choice_t *current, hlml_choice_t *pending)
{
	unsigned long long values[2];
	hlml_return_t result = numbers_into(current && pending ? current : NULL, device, "ecc-mode", values, 2);

	if (result == HLML_SUCCESS) {
		*current = (hlml_choice_t)values[0];
		*pending = (hlml_choice_t)values[1];
	}
	return result;
}

static hlml_return_t errors(hlml_device_t device, hlml_choice_t error, hlml_choice_t counter, const char *location,
			    unsigned long long *count)
{
	struct answer answer;
	unsigned int index;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && !count)
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "errors %u %u %u %s", index, error, counter, location);
	if (result == HLML_SUCCESS && !answer_number(&answer, count))
		result = HLML_ERROR_UNKNOWN;
	return result;
}

hlml_return_t hlml_device_get_total_ecc_errors(hlml_device_t device, hlml_choice_t error, hlml_choice_t counter,
					       unsigned long long *count)
{
	return errors(device, error, counter, "all", count);
}

hlml_return_t hlml_device_get_memory_error_counter(hlml_device_t device, hlml_choice_t error, hlml_choice_t counter,
						   hlml_choice_t location, unsigned long long *count)
{
	static const char *const names[] = { "sram", "dram", "all" };
	/* "All" has a number since the release that generates its Python declarations from the header. */
	const hlml_choice_t known = HLML_API >= 122 ? 3 : 2;

	return errors(device, error, counter, location < known ? names[location] : "none", count);
}

hlml_return_t hlml_device_get_uuid(hlml_device_t device, char *uuid, unsigned int length)
{
	return device_text(device, uuid, length, "uuid");
}

hlml_return_t hlml_device_get_minor_number(hlml_device_t device, unsigned int *minor)
{
	return device_number(device, minor, "minor");
}

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

hlml_return_t hlml_device_err_inject(hlml_device_t device, hlml_choice_t error)
{
	unsigned int none;

	(void)error; /* later headers lack it; here faults come from the simulator's own command */
	return device_number(device, &none, "unsupported");
}

hlml_return_t hlml_device_get_hl_revision(hlml_device_t device, int *revision)
{
	return device_number(device, (unsigned int *)revision, "revision");
}

hlml_return_t hlml_device_get_pcb_info(hlml_device_t device, hlml_pcb_info_t *pcb)
{
	hlml_return_t result =
		device_text(device, pcb ? pcb->pcb_ver : NULL, sizeof(pcb->pcb_ver), "pcb-version");

	if (result == HLML_SUCCESS)
		result = device_text(device, pcb->pcb_assembly_ver, sizeof(pcb->pcb_assembly_ver), "pcb-assembly");
	return result;
}

hlml_return_t hlml_device_get_serial(hlml_device_t device, char *serial, unsigned int length)
{
	return device_text(device, serial, length, "serial");
}

hlml_return_t hlml_device_get_module_id(hlml_device_t device, unsigned int *module)
{
	return device_number(device, module, "module");
}

hlml_return_t hlml_device_get_board_id(hlml_device_t device, unsigned int *board)
{
	return device_number(device, board, "board");
}

hlml_return_t hlml_device_get_pcie_throughput(hlml_device_t device, hlml_choice_t counter, unsigned int *value)
{
	return device_number_by(device, value, "pcie-throughput", counter);
}

hlml_return_t hlml_device_get_pcie_replay_counter(hlml_device_t device, unsigned int *value)
{
	return device_number(device, value, "pcie-replays");
}

hlml_return_t hlml_device_get_curr_pcie_link_generation(hlml_device_t device, unsigned int *generation)
{
	return device_number(device, generation, "pcie-generation");
}

hlml_return_t hlml_device_get_curr_pcie_link_width(hlml_device_t device, unsigned int *width)
{
	return device_number(device, width, "pcie-width");
}

hlml_return_t hlml_device_get_current_clocks_throttle_reasons(hlml_device_t device, unsigned long long *reasons)
{
	return device_wide(device, reasons, "throttle-reasons");
}

hlml_return_t hlml_device_get_total_energy_consumption(hlml_device_t device, unsigned long long *millijoules)
{
	return device_wide(device, millijoules, "energy");
}

hlml_return_t hlml_device_get_violation_status(hlml_device_t device, hlml_choice_t policy, hlml_violation_time_t *times)
{
	struct answer answer;
	unsigned int index;
	hlml_violation_time_t filled;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && !times)
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "violation %u %u", index, policy);
	if (result == HLML_SUCCESS &&
	    (!answer_number(&answer, &filled.reference_time) || !answer_number(&answer, &filled.violation_time)))
		result = HLML_ERROR_UNKNOWN;
	if (result == HLML_SUCCESS)
		*times = filled;
	return result;
}

hlml_return_t hlml_device_get_replaced_rows(hlml_device_t device, hlml_choice_t cause, unsigned int *count,
					    hlml_row_address_t *addresses)
{
	struct answer answer;
	unsigned int index, room, each;
	unsigned long long rows;
	hlml_return_t result = device_index(device, &index);

	if (result == HLML_SUCCESS && !count)
		result = HLML_ERROR_INVALID_ARGUMENT;
	if (result == HLML_SUCCESS)
		result = service_ask(&answer, "rows %u %u", index, cause);
	if (result != HLML_SUCCESS)
		return result;
	if (!answer_number(&answer, &rows))
		return HLML_ERROR_UNKNOWN;
	room = *count;
	*count = (unsigned int)rows;
	if (!addresses) /* only their number is wanted */
		return HLML_SUCCESS;
	if (room < rows)
		return HLML_ERROR_INSUFFICIENT_SIZE;
	for (each = 0; each < rows; each++) {
		unsigned long long hbm, channel, stack, bank, row;

		if (!answer_number(&answer, &hbm) || !answer_number(&answer, &channel) ||
		    !answer_number(&answer, &stack) || !answer_number(&answer, &bank) || !answer_number(&answer, &row))
			return HLML_ERROR_UNKNOWN;
		addresses[each].hbm_idx = (uint8_t)hbm;
		addresses[each].pc = (uint8_t)channel;
		addresses[each].sid = (uint8_t)stack;
		addresses[each].bank_idx = (uint8_t)bank;
		addresses[each].row_addr = (uint16_t)row;
	}
	return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_replaced_rows_pending_status(hlml_device_t device, hlml_choice_t *pending)
{
	return device_number(device, pending, "rows-pending");
}

hlml_return_t hlml_device_get_oper_status(hlml_device_t device, char *status, unsigned int length)
{
	return device_text(device, status, length, "status");
}

hlml_return_t hlml_get_mac_addr_info(hlml_device_t device, uint64_t *mask, uint64_t *external)
{
	unsigned long long values[2 * PORT_WORDS];
	hlml_return_t result = numbers_into(mask && external ? mask : NULL, device, "ports", values, 2 * PORT_WORDS);

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

hlml_return_t hlml_get_hlml_version(char *version, unsigned int length)
{
	return text_of(version, length, "library-version");
}

hlml_return_t hlml_get_driver_version(char *version, unsigned int length)
{
	return text_of(version, length, "driver-version");
}

#if HLML_API >= 120
hlml_return_t hlml_get_nic_driver_version(char *version, unsigned int length)
{
	return text_of(version, length, "nic-driver-version");
}
#endif

hlml_return_t hlml_get_model_number(hlml_device_t device, char *model, unsigned int length)
{
	return device_text(device, model, length, "model");
}

hlml_return_t hlml_get_serial_number(hlml_device_t device, char *serial, unsigned int length)
{
	return device_text(device, serial, length, "serial");
}

hlml_return_t hlml_get_firmware_fit_version(hlml_device_t device, char *version, unsigned int length)
{
	return device_text(device, version, length, "firmware-fit");
}

hlml_return_t hlml_get_firmware_spi_version(hlml_device_t device, char *version, unsigned int length)
{
	return device_text(device, version, length, "firmware-spi");
}

hlml_return_t hlml_get_fw_boot_version(hlml_device_t device, char *version, unsigned int length)
{
	return device_text(device, version, length, "firmware-boot");
}

hlml_return_t hlml_get_fw_os_version(hlml_device_t device, char *version, unsigned int length)
{
	return device_text(device, version, length, "firmware-os");
}

hlml_return_t hlml_get_cpld_version(hlml_device_t device, char *version, unsigned int length)
{
	return device_text(device, version, length, "cpld");
}

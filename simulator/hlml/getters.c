/* One function for each value of a card: identity, load, power, errors. */
#include "device.h"

#include <string.h>

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

hlml_return_t hlml_device_get_utilization_rates(hlml_device_t device, hlml_utilization_t *utilization)
{
	unsigned long long values[2];
	hlml_return_t result = device_numbers(utilization, device, "utilization", values, 2);

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
	hlml_return_t result = device_numbers(memory, device, "memory", values, 3);

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
	hlml_return_t result = device_numbers(low && high ? low : NULL, device, "power-limit-range", values, 2);

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
	hlml_return_t result = device_numbers(current && pending ? current : NULL, device, "ecc-mode", values, 2);

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

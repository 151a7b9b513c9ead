# Machines that are there already: nothing is made, the same checks are made and the same outputs given.

module "cluster" {
  source = "../cluster"

  cloud                     = "onprem"
  cluster_size              = var.cluster_size
  instance_type             = var.instance_type
  accept_other_accelerators = var.accept_other_accelerators
  accept_withdrawn_type     = var.accept_withdrawn_type
  extra_instance_types      = var.extra_instance_types
  name                      = var.name
  tags                      = var.tags
  allowed_cidrs             = var.allowed_cidrs
  ssh_public_key            = var.ssh_public_key
  ssh_key_required          = false
  dedicated_monitor         = local.monitor != null
  teardown                  = var.teardown
}

locals {
  columns = ["name", "address", "cluster_address", "port", "user", "jump_host", "host_key", "bmc", "zone", "role"]

  # Through JSON, as the two forms have types of their own.
  text = try(file(var.hosts_file), "")
  rows = flatten([try(jsondecode(endswith(lower(var.hosts_file), ".csv") ? jsonencode(csvdecode(local.text)) : try(jsonencode(yamldecode(local.text).hosts), jsonencode(yamldecode(local.text)))), [])])

  # An empty cell of a table is nothing.
  read = [
    for row in local.rows : {
      for column in local.columns : column => try(trimspace(row[column]) == "" ? null : trimspace(row[column]), null)
    }
  ]
  machines = concat(
    [for host in var.hosts : merge({ for column in local.columns : column => null }, { for column, value in host : column => value == null ? null : tostring(value) })],
    [for host in local.read : host if try(host.role, null) != "monitor"],
  )
  monitor = try(merge({ for column in local.columns : column => null }, { for column, value in var.monitor_host : column => value == null ? null : tostring(value) }), one([for host in local.read : host if try(host.role, null) == "monitor"]))
  used    = slice(local.machines, 0, min(length(module.cluster.node_names), length(local.machines)))

  patterns = {
    name    = "^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$"
    address = "^[A-Za-z0-9.:-]+$"

    cluster_address = "^[A-Za-z0-9.:-]+$"
    port            = "^([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$"
    user            = "^[a-z_][a-z0-9_-]{0,31}$"
    bmc             = "^[A-Za-z0-9.:-]+$"
    zone            = "^[A-Za-z0-9._-]+$"
    jump_host       = "^([a-z_][a-z0-9_-]*@)?[A-Za-z0-9.-]+(:[0-9]{1,5})?$"
    host_key        = "^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]+=*$"
  }
  wrong = flatten([
    for host in concat(local.machines, local.monitor == null ? [] : [local.monitor]) : [
      for column, pattern in local.patterns : "${column} '${host[column]}'" if host[column] != null && !can(regex(pattern, host[column]))
    ]
  ])
}

# What was asked for; a state whose outputs do not match it is half applied, and the inventory plugin refuses it.
resource "terraform_data" "intent" {
  input = {
    hosts = length(local.used) + (local.monitor == null ? 0 : 1)
    names = concat(local.used[*].name, local.monitor == null ? [] : [local.monitor.name])
  }

  # Here and not with the variables, as what they hold is read from two places.
  lifecycle {
    precondition {
      condition     = var.hosts_file == "" || !can(file(var.hosts_file)) || (length(local.rows) > 0 && alltrue([for row in local.rows : can(row.name) && can(row.address)]))
      error_message = "hosts_file is '${var.hosts_file}', which has no machines, or one without name or address: write each as name, address and, where needed, ${join(", ", slice(local.columns, 2, length(local.columns)))}."
    }

    precondition {
      condition     = var.hosts_file == "" || length(setsubtract(flatten([for row in local.rows : try(keys(row), [])]), local.columns)) == 0
      error_message = "hosts_file has ${join(", ", setsubtract(flatten([for row in local.rows : try(keys(row), [])]), local.columns))}, which is not known: the names are ${join(", ", local.columns)}."
    }

    precondition {
      condition     = var.hosts_file == "" || length([for row in local.rows : row if try(row.role, "") == "monitor"]) <= (var.monitor_host == null ? 1 : 0)
      error_message = "hosts_file has a machine with role = monitor beside another one: give one monitoring machine, there or as monitor_host."
    }

    precondition {
      condition     = length(distinct(local.machines[*].name)) == length(local.machines) && length(distinct([for host in local.machines : "${host.address} ${coalesce(host.port, 22)}"])) == length(local.machines)
      error_message = "hosts has a name or an address twice (${join(", ", [for host in local.machines : "${host.name} ${host.address}"])}): give each machine its own."
    }

    precondition {
      condition     = length(local.wrong) == 0
      error_message = "hosts has ${join(", ", local.wrong)}: give a name in lower-case letters, digits and dashes, an address, a port from 1 to 65535, a user of Linux, jump_host as user@host or user@host:port, and host_key as a type and a key, such as ssh-ed25519 AAAA..."
    }

    precondition {
      condition     = var.teardown || length(local.machines) >= length(module.cluster.node_names)
      error_message = "hosts has ${length(local.machines)} machines, but cluster_size = ${var.cluster_size} needs ${length(module.cluster.node_names)} of type ${var.instance_type}: add machines or ask for fewer cards."
    }

    precondition {
      condition     = local.monitor == null || !contains(concat(local.machines[*].name, local.machines[*].address), try(local.monitor.name, ""))
      error_message = "monitor_host is called as one of hosts is (${try(local.monitor.name, "")}): give it a name of its own, or leave it out to let the first node monitor."
    }
  }
}

# The nodes as Ansible wants them, alike for every cloud.

locals {
  nodes = {
    for index, node in var.nodes : node.name => {
      role          = index == 0 ? "head" : "worker"
      private_ip    = node.private_ip
      public_ip     = node.public_ip
      instance_id   = node.instance_id
      instance_type = coalesce(node.type, var.instance_type)
      cards         = var.type.cards
      zone          = node.zone
      market        = node.market
      ssh_user      = coalesce(node.ssh_user, var.ssh_user)
      ssh_port      = node.ssh_port
      ssh_arguments = local.own_arguments[node.name]
      host_key      = node.host_key
      bmc           = node.bmc
      connect_to    = coalesce(node.connect_to, node.private_ip)
    }
  }
  monitors = var.monitor == null ? {} : {
    (var.monitor.name) = {
      role          = "monitor"
      private_ip    = var.monitor.private_ip
      public_ip     = var.monitor.public_ip
      instance_id   = var.monitor.instance_id
      instance_type = var.monitor.type
      cards         = 0
      zone          = var.monitor.zone
      market        = null
      ssh_user      = coalesce(var.monitor.ssh_user, var.ssh_user)
      ssh_port      = var.monitor.ssh_port
      ssh_arguments = local.own_arguments[var.monitor.name]
      host_key      = var.monitor.host_key
      bmc           = var.monitor.bmc
      connect_to    = coalesce(var.monitor.connect_to, var.monitor.private_ip)
    }
  }
  hosts = merge(local.nodes, local.monitors)
  head  = try(var.nodes[0].name, null)

  ssh_arguments = join(" ", compact([var.jump_host == "" ? "" : "-o ProxyJump=${var.jump_host}", var.ssh_arguments]))

  # The jump host may be one of the hosts: it is reached without one, as ssh refuses to jump to a host through itself.
  jump_address = try(regex("^(?:[^@]*@)?([^@:]+)(?::[0-9]+)?$", var.jump_host)[0], "")
  jump_hosts = {
    for host in concat([for node in var.nodes : merge(node, { market = null })], var.monitor == null ? [] : [merge(var.monitor, { market = null })]) :
    host.name => host.jump_host != null ? host.jump_host : coalesce(host.connect_to, host.private_ip) == local.jump_address ? "none" : null
  }

  # Of a host that has a jump host or a key of its own; null where what the cluster has is enough. With a key nothing
  # else is believed, and nothing has to be answered or learnt at the first connection.
  own_arguments = {
    for host in concat(var.nodes, var.monitor == null ? [] : [merge(var.monitor, { market = null })]) : host.name => local.jump_hosts[host.name] == null && host.host_key == null ? null : join(" ", compact([
      try("-o ProxyJump=${coalesce(local.jump_hosts[host.name], var.jump_host)}", ""),
      host.host_key == null ? "" : "-o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null -o KnownHostsCommand=\"/bin/echo %H ${coalesce(host.host_key, "?")}\"",
      var.ssh_arguments,
    ]))
  }

  inventory = {
    all = {
      vars = merge(
        { ansible_user = var.ssh_user, ansible_become = var.ssh_user != "root" },
        local.ssh_arguments == "" ? {} : { ansible_ssh_common_args = local.ssh_arguments },
      )
      hosts = {
        for name, host in local.hosts : name => merge(
          { ansible_host = host.connect_to, gaudi_cluster_address = host.private_ip },
          host.instance_type == null ? {} : { gaudi_instance_type = host.instance_type },
          host.instance_id == null ? {} : { gaudi_instance_id = host.instance_id },
          host.zone == null ? {} : { gaudi_zone = host.zone },
          host.market == null ? {} : { gaudi_market = host.market },
          host.public_ip == null ? {} : { gaudi_public_address = host.public_ip },
          host.bmc == null ? {} : { gaudi_bmc_address = host.bmc },
          host.ssh_port == null ? {} : { ansible_port = host.ssh_port },
          host.ssh_user == var.ssh_user ? {} : { ansible_user = host.ssh_user },
          host.ssh_user == var.ssh_user ? {} : { ansible_become = host.ssh_user != "root" },
          host.ssh_arguments == null ? {} : { ansible_ssh_common_args = host.ssh_arguments },
        )
      }
      children = {
        gaudi      = { hosts = { for node in var.nodes : node.name => {} } }
        gaudi_head = { hosts = { for name in compact([local.head]) : name => {} } }
        monitoring = { hosts = { for name in compact([try(var.monitor.name, local.head)]) : name => {} } }
        (var.cloud) = {
          hosts = { for name in keys(local.hosts) : name => {} }
          vars = merge(
            { gaudi_cloud = var.cloud, gaudi_cluster = var.name },
            var.region == null ? {} : { gaudi_region = var.region },
            var.checkpoint_target == null ? {} : { gaudi_checkpoint_target = var.checkpoint_target },
            var.variables,
          )
        }
      }
    }
  }
}

# Machines of a cloud have private addresses. A check warns and goes on: Ansible may run inside their network.
check "way_in" {
  assert {
    condition     = var.cloud == "onprem" || local.ssh_arguments != "" || length(var.allowed_cidrs) > 0
    error_message = "The nodes of ${var.name} have private addresses and admit no network, so that ssh reaches them from inside their own network only: set allowed_cidrs${var.cloud == "aws" ? ", jump_host or connection" : " or jump_host"}, as docs/terraform.md shows under 'The way in'."
  }
}

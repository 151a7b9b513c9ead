# The machines and the way to them, alike for every cloud. plugins/inventory/terraform.py makes the inventory of it.

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
      jump_host     = node.jump_host
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
      jump_host     = var.monitor.jump_host
      host_key      = var.monitor.host_key
      bmc           = var.monitor.bmc
      connect_to    = coalesce(var.monitor.connect_to, var.monitor.private_ip)
    }
  }
  hosts = merge(local.nodes, local.monitors)
}

# Machines of a cloud have private addresses. A check warns and goes on: Ansible may run inside their network.
check "way_in" {
  assert {
    condition     = var.cloud == "onprem" || var.jump_host != "" || var.connection != "direct" || length(var.allowed_cidrs) > 0
    error_message = "The nodes of ${var.name} have private addresses and admit no network, so that ssh reaches them from inside their own network only: set allowed_cidrs${var.cloud == "aws" ? ", jump_host or connection" : " or jump_host"}, as docs/clouds/terraform.md shows under 'The way in'."
  }
}

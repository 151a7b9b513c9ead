locals {
  described = [
    for host in concat(local.used, local.monitor == null ? [] : [local.monitor]) : {
      name       = host.name
      private_ip = coalesce(host.cluster_address, host.address)
      zone       = host.zone
      connect_to = host.address
      ssh_port   = host.port == null ? null : tonumber(host.port)
      ssh_user   = host.user
      jump_host  = host.jump_host
      host_key   = host.host_key
      bmc        = host.bmc
    }
  ]
}

module "inventory" {
  source = "../inventory"

  cloud         = "onprem"
  name          = var.name
  type          = module.cluster.type
  instance_type = module.cluster.instance_type
  nodes         = slice(local.described, 0, length(local.used))
  monitor       = try(local.described[length(local.used)], null)
  ssh_user      = var.ssh_user
  jump_host     = var.jump_host
  tags          = module.cluster.tags
  allowed_cidrs = module.cluster.allowed_cidrs
}

output "cluster_endpoints" {
  description = "Every host by name: role (head, worker or monitor), private and public address, instance id and type, cards, zone, market, ssh user, and what ssh connects to."
  value       = module.inventory.cluster_endpoints
}

output "master_ip" {
  description = "Private address of the first node, where training processes meet."
  value       = module.inventory.master_ip
}

output "cluster" {
  description = "What the cluster is: name, cloud, region, type, accelerator, cards and nodes, where checkpoints can be kept, how ssh gets there."
  value       = module.inventory.cluster
}

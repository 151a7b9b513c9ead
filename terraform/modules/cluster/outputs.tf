output "type" {
  description = "The catalogue's entry of the instance type."
  value       = local.type
}

output "instance_type" {
  description = "The instance type, checked."
  value       = var.instance_type
}

output "node_names" {
  description = "Names of the nodes in their order; the first is where training processes meet."
  value       = local.node_names
}

output "nodes" {
  description = "The nodes by name, with their place in the order from 0 on."
  value       = { for index, name in local.node_names : name => { index = index } }
}

output "monitor_name" {
  description = "Name of the monitoring machine; null where monitoring shares the first node."
  value       = var.dedicated_monitor ? "${var.name}-monitor" : null
}

output "tags" {
  description = "Tags of everything, the cluster's own included."
  value       = merge(var.tags, { Cluster = var.name, ManagedBy = "terraform" })
}

output "region" {
  description = "The region, checked."
  value       = var.region
}

output "allowed_cidrs" {
  description = "The admitted networks, checked and without repetition."
  value       = toset(var.allowed_cidrs)
}

output "ssh_public_key" {
  description = "The public key, checked, without the newline of its file."
  value       = trimspace(var.ssh_public_key)
}

output "user_data" {
  description = "What cloud-init runs on a node: local NVMe disks striped and mounted at every start, and the end of its time."
  value = templatefile("${path.module}/templates/node.yaml.tftpl", {
    mount    = var.nvme_mount
    script   = base64encode(file("${path.module}/templates/scratch.sh"))
    disks    = try(local.type.nvme_count, 0)
    lifetime = base64encode(file("${path.module}/templates/lifetime.sh"))
    ttl      = local.seconds.ttl
    idle     = local.seconds.idle
  })
}

output "monitor_user_data" {
  description = "What cloud-init runs on the monitoring machine; null where there is nothing to run."
  value = local.seconds.ttl == 0 ? null : templatefile("${path.module}/templates/node.yaml.tftpl", {
    mount    = var.nvme_mount
    script   = ""
    disks    = 0
    lifetime = base64encode(file("${path.module}/templates/lifetime.sh"))
    ttl      = local.seconds.ttl
    idle     = 0
  })
}

output "ends_itself" {
  description = "Whether a node powers itself off at some time."
  value       = local.seconds.ttl + local.seconds.idle > 0
}

output "checkpoint_prefix" {
  description = "Where in the bucket the cluster's checkpoints go."
  value       = "${var.name}/checkpoints"
}

output "root_volume_gb" {
  description = "Size of the root volume, checked."
  value       = var.root_volume_gb
}

output "network_cidr" {
  description = "The private network, checked."
  value       = var.network_cidr
}

output "node_subnet_cidr" {
  description = "The part of the private network that the nodes are in."
  value       = cidrsubnet(var.network_cidr, 4, 1)
}

output "public_subnet_cidr" {
  description = "The part of the private network that a gateway to the internet is in, where the cloud wants one."
  value       = cidrsubnet(var.network_cidr, 8, 0)
}

output "hourly_usd" {
  description = "Price of all nodes per hour on demand, by the catalogue; null where it has none."
  value       = try(local.node_price * local.node_count, null)
}

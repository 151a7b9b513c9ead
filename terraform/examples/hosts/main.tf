# Machines that are there already, in a table: terraform apply, then terraform output -raw ansible_inventory > hosts.yml.

terraform {
  required_version = ">= 1.9"
}

module "cluster" {
  source = "../../modules/onprem"

  cluster_size  = 16
  instance_type = "onprem-gaudi3-8"
  hosts_file    = "${path.module}/hosts.csv"
}

output "ansible_inventory" {
  description = "The inventory as YAML."
  value       = module.cluster.ansible_inventory
}

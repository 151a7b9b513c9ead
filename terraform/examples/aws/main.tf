# A cluster on AWS inside a configuration of your own. AWS offers no machine with a current Gaudi: these have other
# accelerators, on which the control plane can be rehearsed.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }

  # For a team: a state with a lock, which nobody loses with a checkout.
  # backend "s3" {
  #   bucket       = "my-states"
  #   key          = "gaudi/rehearsal"
  #   region       = "us-east-1"
  #   use_lockfile = true # from Terraform 1.10 on
  # }
}

provider "aws" {
  region = "us-east-1"
}

variable "ssh_public_key" {
  description = "Public key that may log in to the nodes."
  type        = string
}

module "cluster" {
  source = "../../modules/aws"

  name                      = "rehearsal"
  region                    = "us-east-1"
  cluster_size              = 8
  instance_type             = "p4d.24xlarge"
  accept_other_accelerators = true
  ssh_public_key            = var.ssh_public_key
  connection                = "ssm"
  node_usd_per_hour         = 40 # as your contract has it
  max_hourly_usd            = 50
  ttl                       = "12h"
  tags                      = { Team = "research" }
}

# What the inventory plugin gaudi3.scale.terraform reads.
output "cluster" {
  description = "What the cluster is, and how ssh gets there."
  value       = module.cluster.cluster
}

output "cluster_endpoints" {
  description = "Every host by name."
  value       = module.cluster.cluster_endpoints
}

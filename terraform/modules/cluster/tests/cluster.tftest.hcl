# Fast and without any provider: what is counted, named and refused.

variables {
  cloud          = "aws"
  region         = "us-west-2"
  cluster_size   = 16
  instance_type  = "dl1.24xlarge"
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0h3yqQWfS9NSQfzBf8Ue0qS2hP4b8nA4V1Zb2c3d4e me@example"

  accept_withdrawn_type = true
}

run "two_machines_of_eight_cards" {
  command = plan

  assert {
    condition     = join(" ", output.node_names) == "gaudi-01 gaudi-02"
    error_message = "16 cards of dl1.24xlarge are two nodes."
  }

  assert {
    condition     = output.monitor_name == "gaudi-monitor" && output.hourly_usd == 2 * 13.10904
    error_message = "The monitor's name or the price is wrong."
  }

  assert {
    condition     = strcontains(output.user_data, "/usr/local/sbin/gaudi3-scratch /scratch") && startswith(output.user_data, "#cloud-config")
    error_message = "The nodes do not set their disks up."
  }

  assert {
    condition     = !can(yamldecode(output.user_data).packages) && !strcontains(output.user_data, "lifetime") && output.monitor_user_data == null
    error_message = "A node without a way to the packages must come up, and without ttl it does not end."
  }

  assert {
    condition     = output.node_subnet_cidr == "10.42.16.0/20"
    error_message = "The nodes' subnet is not the one that is documented."
  }
}

run "machines_that_end_themselves" {
  command = plan

  variables {
    ttl           = "12h"
    idle_shutdown = "90m"
  }

  assert {
    condition     = [for file in yamldecode(output.user_data).write_files : file.path if strcontains(file.path, "lifetime")] == ["/usr/local/sbin/gaudi3-lifetime", "/etc/systemd/system/gaudi3-lifetime.service", "/etc/systemd/system/gaudi3-lifetime.timer"]
    error_message = "The nodes get no timer."
  }

  assert {
    condition     = strcontains(output.user_data, "gaudi3-lifetime 43200 5400\n") && strcontains(output.monitor_user_data, "gaudi3-lifetime 43200 0\n") && output.ends_itself
    error_message = "12 hours are 43200 seconds and 90 minutes 5400; the monitoring machine is never idle."
  }

  assert {
    condition     = contains(yamldecode(output.user_data).runcmd, ["systemctl", "enable", "--now", "gaudi3-lifetime.timer"]) && contains(yamldecode(output.monitor_user_data).runcmd, ["systemctl", "enable", "--now", "gaudi3-lifetime.timer"])
    error_message = "The timer is not started."
  }
}

run "names_stay_when_the_cluster_grows" {
  command = plan

  variables {
    cluster_size = 32
  }

  assert {
    condition     = join(" ", output.node_names) == "gaudi-01 gaudi-02 gaudi-03 gaudi-04"
    error_message = "Scaling out must keep the names of the nodes that are there."
  }
}

run "a_type_of_ones_own" {
  command = plan

  variables {
    instance_type             = "x9.metal"
    cluster_size              = 12
    accept_other_accelerators = true
    extra_instance_types = {
      "x9.metal" = { cloud = "aws", accelerator = "X9", cards = 4, source = "a test" }
    }
  }

  assert {
    condition     = length(output.node_names) == 3 && output.hourly_usd == null && !strcontains(output.user_data, "mdadm")
    error_message = "A type from extra_instance_types is not taken as it is described."
  }
}

run "a_region_that_the_catalogue_does_not_know" {
  command = plan

  variables {
    region = "eu-west-1"
    extra_instance_types = {
      "dl1.24xlarge" = { cloud = "aws", accelerator = "Intel Gaudi", gaudi_generation = 1, cards = 8, source = "a test", regions = ["eu-west-1"] }
    }
  }

  assert {
    condition     = output.region == "eu-west-1"
    error_message = "A type described anew must be able to bring its regions."
  }
}

run "size_of_nine" {
  command         = plan
  expect_failures = [var.cluster_size]

  variables {
    cluster_size = 9
  }
}

run "qualcomm" {
  command         = plan
  expect_failures = [var.instance_type]

  variables {
    instance_type = "dl2q.24xlarge"
  }
}

run "too_dear" {
  command         = plan
  expect_failures = [var.max_hourly_usd]

  variables {
    max_hourly_usd = 20
  }
}

run "cheap_enough" {
  command = plan

  variables {
    max_hourly_usd = 30
  }
}

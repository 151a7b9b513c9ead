variables {
  cloud         = "aws"
  name          = "big"
  region        = "us-west-2"
  type          = { accelerator = "Intel Gaudi 3", cards = 8, gaudi_generation = 3 }
  instance_type = "some.type"
  ssh_user      = "ubuntu"
  jump_host     = "me@jump.example.com"
  nodes = [
    { name = "big-01", private_ip = "10.42.16.5", instance_id = "i-1", zone = "us-west-2a" },
    { name = "big-02", private_ip = "10.42.16.6", connect_to = "i-2" },
  ]
}

run "without_a_monitor_the_first_node_monitors" {
  command = plan

  assert {
    condition     = yamldecode(output.ansible_inventory).all.children.monitoring.hosts == { big-01 = {} }
    error_message = "The head must monitor."
  }

  assert {
    condition     = output.master_ip == "10.42.16.5" && output.cluster_endpoints["big-01"].role == "head" && output.cluster_endpoints["big-02"].role == "worker"
    error_message = "The first node is the head."
  }

  assert {
    condition     = yamldecode(output.ansible_inventory).all.hosts["big-02"].ansible_host == "i-2" && yamldecode(output.ansible_inventory).all.hosts["big-02"].gaudi_cluster_address == "10.42.16.6"
    error_message = "What ssh connects to and where nodes find each other are two things."
  }

  assert {
    condition     = yamldecode(output.ansible_inventory).all.vars.ansible_ssh_common_args == "-o ProxyJump=me@jump.example.com"
    error_message = "The jump host is lost."
  }

  assert {
    condition     = output.cluster.cluster_size == 16
    error_message = "Two nodes of eight cards are sixteen."
  }
}

run "with_a_monitor" {
  command = plan

  variables {
    monitor = { name = "big-monitor", private_ip = "10.42.16.4", type = "m6i.large" }
  }

  assert {
    condition     = yamldecode(output.ansible_inventory).all.children.monitoring.hosts == { big-monitor = {} }
    error_message = "The monitor must monitor."
  }

  assert {
    condition     = sort(keys(yamldecode(output.ansible_inventory).all.children.gaudi.hosts)) == tolist(["big-01", "big-02"])
    error_message = "The monitor is no node."
  }
}

run "nodes_that_nobody_reaches" {
  command = plan

  variables {
    jump_host = ""
  }

  expect_failures = [check.way_in]
}

run "a_network_that_is_admitted_is_a_way_in" {
  command = plan

  variables {
    jump_host     = ""
    allowed_cidrs = ["198.51.100.0/24"]
  }
}

run "arguments_of_ssh_are_a_way_in" {
  command = plan

  variables {
    jump_host     = ""
    ssh_arguments = "-o ProxyCommand=\"connect %h\""
  }
}

run "machines_of_ones_own_are_reached_already" {
  command = plan

  variables {
    cloud     = "onprem"
    region    = null
    jump_host = ""
  }
}

run "who_is_the_jump_host_of_the_others_is_reached_without_one" {
  command = plan

  variables {
    jump_host = "me@10.42.16.5:2222"
  }

  assert {
    condition     = yamldecode(output.ansible_inventory).all.hosts["big-01"].ansible_ssh_common_args == "-o ProxyJump=none" && !can(yamldecode(output.ansible_inventory).all.hosts["big-02"].ansible_ssh_common_args)
    error_message = "ssh refuses to jump to a host through itself."
  }
}

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

run "without_a_monitor" {
  command = plan

  assert {
    condition     = output.cluster.monitor == null && sort(keys(output.cluster_endpoints)) == tolist(["big-01", "big-02"])
    error_message = "There is a monitor."
  }

  assert {
    condition     = output.master_ip == "10.42.16.5" && output.cluster_endpoints["big-01"].role == "head" && output.cluster_endpoints["big-02"].role == "worker"
    error_message = "The first node is the head."
  }

  assert {
    condition     = output.cluster_endpoints["big-02"].connect_to == "i-2" && output.cluster_endpoints["big-02"].private_ip == "10.42.16.6"
    error_message = "What ssh connects to and where nodes find each other are two things."
  }

  assert {
    condition     = output.cluster.jump_host == "me@jump.example.com" && output.cluster.connection == "direct"
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
    condition     = output.cluster_endpoints["big-monitor"].role == "monitor" && output.cluster.monitor == "big-monitor"
    error_message = "The monitor must monitor."
  }

  assert {
    condition     = output.cluster.node_names == tolist(["big-01", "big-02"])
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

run "systems_manager_is_a_way_in" {
  command = plan

  variables {
    jump_host  = ""
    connection = "ssm"
  }
}

run "another_way_in_is_refused" {
  command         = plan
  expect_failures = [var.connection]

  variables {
    connection = "-o ProxyCommand=x"
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

run "what_a_machine_has_of_its_own_is_put_out_as_it_is" {
  command = plan

  variables {
    nodes = [{ name = "big-01", private_ip = "10.42.16.5", jump_host = "me@other:2222", host_key = "ssh-ed25519 AAAA" }]
  }

  assert {
    condition     = output.cluster_endpoints["big-01"].jump_host == "me@other:2222" && output.cluster_endpoints["big-01"].host_key == "ssh-ed25519 AAAA"
    error_message = "The machine's own way is lost."
  }
}

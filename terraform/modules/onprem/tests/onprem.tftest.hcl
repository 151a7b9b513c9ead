variables {
  cluster_size  = 16
  instance_type = "onprem-gaudi3-8"
  hosts = [
    { name = "rack-07", address = "192.0.2.7" },
    { name = "rack-03", address = "192.0.2.3" },
    { name = "rack-09", address = "192.0.2.9" },
  ]
}

run "the_first_two_in_their_order" {
  command = plan

  assert {
    condition     = output.cluster.node_names == tolist(["rack-07", "rack-03"]) && output.master_ip == "192.0.2.7"
    error_message = "The order of hosts is the user's."
  }
}

run "too_few_machines" {
  command         = plan
  expect_failures = [terraform_data.intent]

  variables {
    cluster_size = 32
  }
}

run "an_address_twice" {
  command         = plan
  expect_failures = [terraform_data.intent]

  variables {
    hosts = [
      { name = "rack-07", address = "192.0.2.7" },
      { name = "rack-08", address = "192.0.2.7" },
    ]
  }
}

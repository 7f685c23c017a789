"""The operator: from GPUPool and TextToSQLWorkflow to the pods, the router and the tuner that they ask for."""

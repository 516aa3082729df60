# SPDX-License-Identifier: Apache-2.0
"""What AIPowerMeter offers to a program, recorded and analysed by wattmeter.

    from wattmeter.compat.deep_learning_power_measure.power_measure import (
        experiment, parsers)

    driver = parsers.JsonParser("measure_power")
    exp = experiment.Experiment(driver)
    p, q = exp.measure_yourself(period=2)
    train()
    q.put(experiment.STOP_MESSAGE)

    experiment.ExpResults(driver).print()

docs/coming-from-aipowermeter.md says what is the same, and what is right now.
"""

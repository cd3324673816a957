"""Learning from answers: labelled examples, the head fitted on them, calibration and the bound."""

"""What a terminal is shown: screens, curves, figures, states in words; made of what is handed over alone."""

"""Training and tuning on functions (CE-scaling): calibrate, plan the stages, run them, adapt while training."""

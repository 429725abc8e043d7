CREATE TABLE envs (name TEXT PRIMARY KEY, observations INTEGER, actions INTEGER, kind TEXT, max_steps INTEGER, solved_at REAL);
INSERT INTO envs VALUES
 ('CartPole-v1', 4, 2, 'discrete', 500, 475.0),
 ('Acrobot-v1', 6, 3, 'discrete', 500, -100.0),
 ('MountainCar-v0', 2, 3, 'discrete', 200, -110.0),
 ('Pendulum-v1', 3, 1, 'continuous', 200, -180.0),
 ('MountainCarContinuous-v0', 2, 1, 'continuous', 999, 90.0),
 ('LunarLander-v3', 8, 4, 'discrete', 1000, 200.0),
 ('HalfCheetah-v5', 17, 6, 'continuous', 1000, 4800.0),
 ('Hopper-v5', 11, 3, 'continuous', 1000, 3800.0);
CREATE TABLE settings (name TEXT PRIMARY KEY, value REAL, meaning TEXT);
INSERT INTO settings VALUES
 ('lr', 0.0003, 'learning rate'), ('gamma', 0.99, 'discount'), ('lam', 0.95, 'lambda of GAE'), ('clip', 0.2, 'range of the ratio'),
 ('epochs', 10, 'passes over a rollout'), ('steps', 2048, 'steps per env and rollout'), ('ent_coef', 0.0, 'entropy bonus'),
 ('vf_coef', 0.5, 'weight of the value loss'), ('max_grad_norm', 0.5, 'largest gradient');
CREATE TABLE exits (code INTEGER PRIMARY KEY, meaning TEXT);
INSERT INTO exits VALUES (0, 'fine'), (1, 'a finding'), (2, 'failed or refused'), (64, 'the command line is wrong');

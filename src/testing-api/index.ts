/** `sallyport/testing`: the servers for the tests of an app, on Node 20 or later and without dependencies. */
export { connectSallyport } from './connect.ts'
export type { Simulation } from './simulations.ts'
export { startSallyport } from './start.ts'
export type {
  App,
  Comparison,
  Connection,
  LaunchOptions,
  Problem,
  ProblemOptions,
  RegisteredApp,
  Sallyport,
  StartOptions,
  TokenOptions,
  User,
  Users,
} from './types.ts'

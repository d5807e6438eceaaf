export { findFreePorts as freePorts } from '../../src/cli/start/ephemeral.ts'

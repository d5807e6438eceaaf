/** `npm run check:modules`: imports go one way, by index.ts, and never in a cycle; only config reads the environment, only cli prints; failures are values with a brand; hours and days are constants of core. */
import { findConstantFaults } from './checks/constants.ts'
import { findFailureFaults } from './checks/failures.ts'
import { findModuleFaults } from './checks/modules.ts'
import { conclude, listFiles, readSources } from './checks/sources.ts'

const sources = readSources(listFiles().filter(file => file.endsWith('.ts')))
conclude('modules', [
  ...findModuleFaults(sources),
  ...findFailureFaults(sources),
  ...findConstantFaults(sources),
])

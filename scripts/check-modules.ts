/** `npm run check:modules`: imports go one way, by index.ts, and never in a cycle; only config reads the environment, only cli prints; failures are values with a brand; hours and days are constants of core; one function finds the files of the program. */
import { findConstantFaults } from './checks/constants.ts'
import { findFailureFaults } from './checks/failures.ts'
import { findModuleFaults } from './checks/modules.ts'
import { findOwnFileFaults } from './checks/own-files.ts'
import { conclude, listFiles, readSources } from './checks/sources.ts'

const files = listFiles()
const sources = readSources(files.filter(file => file.endsWith('.ts')))
conclude('modules', [
  ...findModuleFaults(sources),
  ...findFailureFaults(sources),
  ...findConstantFaults(sources),
  ...findOwnFileFaults(sources, files),
])

/** `npm run check:modules`: imports go one way, by index.ts, and never in a cycle; only config reads the environment, only cli prints; failures are values with a brand; hours and days are constants of core; one function finds the files of the program; no two exported types have the same name. */
import { findConstantFaults } from './checks/constants.ts'
import { findFailureFaults } from './checks/failures.ts'
import { findModuleFaults } from './checks/modules.ts'
import { findOwnFileFaults } from './checks/own-files.ts'
import { conclude, listFiles, readSources } from './checks/sources.ts'
import { findTypeNameFaults } from './checks/type-names.ts'

const files = listFiles()
const sources = readSources(files.filter(file => file.endsWith('.ts')))
conclude('modules', [
  ...findModuleFaults(sources),
  ...findFailureFaults(sources),
  ...findConstantFaults(sources),
  ...findOwnFileFaults(sources, files),
  ...findTypeNameFaults(sources),
])

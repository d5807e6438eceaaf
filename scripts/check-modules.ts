/** `npm run check:modules`: imports go one way, doors are used, only config reads the environment, only cli prints. */
import { findModuleFaults } from './checks/modules.ts'
import { conclude, listFiles, readSources } from './checks/sources.ts'

const sources = readSources(listFiles().filter(file => file.startsWith('src/') && file.endsWith('.ts')))
conclude('modules', findModuleFaults(sources))

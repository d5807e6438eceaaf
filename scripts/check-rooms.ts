/** `npm run check:rooms`: imports go one way, doors are used, only config reads the environment, only cli prints. */
import { roomFaults } from './checks/rooms.ts'
import { conclude, listFiles, readSources } from './checks/sources.ts'

const sources = readSources(listFiles().filter(file => file.startsWith('src/') && file.endsWith('.ts')))
conclude('rooms', roomFaults(sources))

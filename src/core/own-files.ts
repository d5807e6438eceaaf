import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The files and folders that the program reads at run time, by their path from the root of the clone or package. The build copies
 * them beside the compiled modules, and a test looks for each of them in the packages. Nothing else finds files of ours (scripts/checks/own-files.ts).
 */
export const OWN_FILES = [
  'examples/apps',
  'src/auth/users/common-passwords.txt',
  'src/fhir/definitions/r4.json',
  'src/sample-patients/hospital.ndjson',
  'src/sample-patients/patients.ndjson',
  'src/sample-patients/us-core.ndjson',
  'src/web/ui/assets',
] as const

/** Read as well, and made by the build. */
export const BUILT_FILES = ['package.json', 'src/launcher/nodes.json'] as const

/** Modules that the program starts as a process or thread: no import leads the compiler to them. Without extension. */
export const OWN_PROGRAMS = [
  'src/cli/main',
  'src/cli/start/sample-patients-worker',
  'src/launcher/main',
  'src/launcher/started',
  'src/store/sqlite/trail-thread',
  'src/testing-api/hold',
] as const

type OwnFile = (typeof OWN_FILES | typeof BUILT_FILES)[number] | `${(typeof OWN_FILES)[number]}/${string}`

/** The program was compiled (`.js`), as the installed package is, or it is a clone, whose TypeScript files Node runs. */
const EXTENSION = extname(import.meta.url)

/** Whether this is the installed package or an image, and no clone. */
export const isInstalled = EXTENSION === '.js'

const ROOT = new URL('../../', import.meta.url)

export function readOwnFile(path: OwnFile): string {
  return readFileSync(new URL(path, ROOT), 'utf8')
}

export function listOwnFolder(path: OwnFile): readonly string[] {
  return readdirSync(new URL(path, ROOT))
}

/** The path of a module that is started. */
export function findOwnProgram(path: (typeof OWN_PROGRAMS)[number]): string {
  return fileURLToPath(new URL(`${path}${EXTENSION}`, ROOT))
}

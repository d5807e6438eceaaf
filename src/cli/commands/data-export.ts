import { appendFileSync, closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Repository } from '../../backends/sqlite/index.ts'
import type { Settings } from '../../config/index.ts'
import { type Command, CommandFailure } from '../command.ts'
import { administer, findDataFile, loadSettings } from '../with-store.ts'

export const dataExport: Command = {
  usage: `
Usage: npm run -s sallyport -- data export <file or folder>

Writes the current version of every resource of the embedded server as NDJSON: to a file whose name ends with .ndjson, or
to a folder with one file for each resource type. Overwrites no file. Works while the servers run: the export has the
resources of one moment. The audit trail records it. The files contain patient data that everyone who can read them can see.

To import them: data import <file or folder>

Example:
  npm run -s sallyport -- data export backup/`,
  options: {},
  positionals: { min: 1, max: 1 },
  async run({ positionals: [target = ''] }, io) {
    const settings = loadSettings(io)
    const file = findExported(settings)
    await administer(io, 'data export', async () => {})
    const { openRepository } = await import('../../backends/sqlite/index.ts')
    const repository = openRepository({ file, baseUrl: settings.fhirBaseUrl })
    try {
      const count = exportTo(resolve(io.cwd, target), repository)
      io.stdout.write(`Exported ${count.toLocaleString('en')} resources to ${target}\n`)
      return 0
    } catch (error) {
      throw new CommandFailure(`Cannot export to ${target}: ${reasonOf(error)}`)
    } finally {
      repository.close()
    }
  },
}

function findExported(settings: Settings): string {
  if (settings.fhir.upstreamUrl !== undefined)
    throw new CommandFailure('Cannot export: SMART_FHIR_UPSTREAM_URL is set, so that server stores the data')
  const file = findDataFile(settings)
  if (!existsSync(file)) throw new CommandFailure(`Cannot export: there is no ${file}`)
  return file
}

function exportTo(path: string, repository: Repository): number {
  const isFile = path.endsWith('.ndjson') && !(existsSync(path) && statSync(path).isDirectory())
  if (!isFile) mkdirSync(path, { recursive: true })
  const files = new Map<string, LineWriter>()
  let count = 0
  try {
    for (const { type, content } of repository.listCurrent()) {
      const name = isFile ? path : join(path, `${type}.ndjson`)
      const file = files.get(name) ?? openLines(name)
      files.set(name, file)
      file.write(content)
      count++
    }
    return count
  } finally {
    for (const file of files.values()) file.close()
  }
}

interface LineWriter {
  write(line: string): void
  close(): void
}

const CHUNK = 65_536

/** Fails if the file exists. */
function openLines(path: string): LineWriter {
  const file = openSync(path, 'wx')
  let chunk = ''
  const flush = () => {
    appendFileSync(file, chunk)
    chunk = ''
  }
  return {
    write(line) {
      chunk += `${line}\n`
      if (chunk.length >= CHUNK) flush()
    },
    close() {
      flush()
      closeSync(file)
    },
  }
}

function reasonOf(error: unknown): string {
  const isKnown = error instanceof Error && 'code' in error && error.code === 'EEXIST' && 'path' in error
  if (isKnown) return `${error.path} exists`
  return error instanceof Error ? error.message : String(error)
}

import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { prepareBrowser } from './browser-finder.ts'
import type { Postgres, Template } from './postgres.ts'

/**
 * Before all test files: a real PostgreSQL (`TEST_POSTGRES_URL`, unless one is given), a Chromium (`CHROMIUM_PATH`), and one
 * temporary folder for all. What the files to be run do not need (`TEST_NEEDS`, from scripts/test.ts) is left out.
 */
let postgres: Postgres | undefined
let template: Template | undefined
let folder: string | undefined

function needs(thing: 'postgres' | 'browser'): boolean {
  return process.env.TEST_NEEDS === undefined || process.env.TEST_NEEDS.split(',').includes(thing)
}

export async function globalSetup(): Promise<void> {
  if (needs('postgres')) await preparePostgres()
  if (needs('browser')) process.env.CHROMIUM_PATH = await prepareBrowser()
  // A short name: browsers put sockets below it, whose paths have at most 107 characters.
  folder = mkdtempSync(join(findQuickFolder(), 'tests-'))
  process.env.TMPDIR = folder
  process.env.TEST_RUN_FOLDER = folder
  process.once('exit', removeFolder)
}

async function preparePostgres(): Promise<void> {
  // A run that does not need it does not load the store.
  const { makeTemplate, startPostgres } = await import('./postgres.ts')
  if (process.env.TEST_POSTGRES_URL === undefined) {
    postgres = await startPostgres(findQuickFolder())
    process.env.TEST_POSTGRES_URL = postgres.url
  }
  template = await makeTemplate(process.env.TEST_POSTGRES_URL)
  process.env.TEST_POSTGRES_TEMPLATE = template.name
}

export async function globalTeardown(): Promise<void> {
  if (postgres) await postgres.stop()
  else await template?.remove()
  removeFolder()
}

const SHARED_MEMORY = '/dev/shm'
/** Far more than all tests write at once. */
const ENOUGH = 4 * 1024 ** 3

/** Memory where the machine has enough of it: the tests commit thousands of transactions, and wait for a disk each time. */
function findQuickFolder(): string {
  try {
    accessSync(SHARED_MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(SHARED_MEMORY)
    return bavail * bsize >= ENOUGH ? SHARED_MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}

function removeFolder(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
}

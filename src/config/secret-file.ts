import { randomBytes } from 'node:crypto'
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { findCode, hasCode } from '../core/index.ts'
import { makeFolder } from '../store/index.ts'
import { SettingsError } from './settings-error.ts'

const FILE_NAME = 'secret'

export function readSecret(dataDir: string): string | undefined {
  try {
    return readFileSync(join(dataDir, FILE_NAME), 'utf8').trim() || undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return undefined
    throw failDataFolder(dataDir, error)
  }
}

/** Reads a secret that a setting gives by the name of its file, such as a mounted secret of a container. */
export function readSecretFile(path: string, cwd: string, name: string): string {
  try {
    const text = readFileSync(resolve(cwd, path), 'utf8').trim()
    if (text !== '') return text
  } catch (error) {
    throw new SettingsError(`Cannot use ${name}: cannot read ${path}: ${describeReason(error)}`)
  }
  throw new SettingsError(`Cannot use ${name}: ${path} is empty`)
}

/** On loopback the first start creates the secret, readable by this user only (SETTING-8). */
export function ensureSecret({ secret, dataDir, onLoopback }: SecretSettings): string {
  if (secret !== undefined) return secret
  if (!onLoopback) throw new SettingsError('Cannot start: SMART_SECRET must be set off loopback')
  try {
    makeSecret(dataDir)
  } catch (error) {
    throw failDataFolder(dataDir, error)
  }
  return readSecret(dataDir) ?? failEmpty(dataDir)
}

// Written to a temporary file and linked into place: if several first starts run at once, one wins and none reads a
// partial secret.
function makeSecret(dataDir: string): void {
  makeFolder(dataDir)
  const made = join(dataDir, `${FILE_NAME}.${process.pid}.${randomBytes(4).toString('hex')}`)
  writeFileSync(made, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    linkSync(made, join(dataDir, FILE_NAME))
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    rmSync(made)
  }
}

function failEmpty(dataDir: string): never {
  throw new SettingsError(`Cannot use the secret in ${dataDir}: the file is empty`)
}

function failDataFolder(dataDir: string, cause: unknown): SettingsError {
  const reason = describeReason(cause)
  return new SettingsError(`Cannot use data folder ${dataDir} (SMART_DATA_DIR): ${reason}`, { cause })
}

function describeReason(cause: unknown): string {
  const code = findCode(cause) ?? String(cause)
  return REASONS[code] ?? code
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EEXIST: 'it is not a folder',
  ENOTDIR: 'it is not a folder',
  EISDIR: 'it is not a file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'it is on a read-only file system',
  ENOSPC: 'the disk is full',
}

interface SecretSettings {
  readonly secret: string | undefined
  readonly dataDir: string
  readonly onLoopback: boolean
}

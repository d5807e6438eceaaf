import { readFileSync } from 'node:fs'
import { CommandFailure } from '../command.ts'

const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** Reads a JSON Web Key Set (RFC 7517) of public keys, and gives it as JSON. */
export function readPublicKeys(path: string, shownAs: string): string {
  const refuse = (reason: string) => new CommandFailure(`Cannot use --jwks-file ${shownAs}: ${reason}`)
  const keys = keysOf(readJson(path, refuse))
  if (keys === undefined || keys.length === 0)
    throw refuse('expected a JSON Web Key Set with at least one key')
  for (const key of keys) {
    if (PRIVATE_MEMBERS.some(member => member in key))
      throw refuse('it has a private or secret key; only public keys belong here')
    if (key.kty !== 'RSA' && key.kty !== 'EC') throw refuse('expected keys of type RSA or EC')
  }
  return JSON.stringify({ keys })
}

function readJson(path: string, refuse: (reason: string) => CommandFailure): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    // The message of a parser would show a piece of the file.
    throw refuse(error instanceof SyntaxError ? 'it is not JSON' : 'it cannot be read')
  }
}

function keysOf(value: unknown): readonly Readonly<Record<string, unknown>>[] | undefined {
  if (!isRecord(value) || !Array.isArray(value.keys)) return undefined
  return value.keys.every(isRecord) ? value.keys : undefined
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

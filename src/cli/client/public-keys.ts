import { readFileSync } from 'node:fs'
import { CommandFailure } from '../command.ts'

/** Reads a JSON Web Key Set (RFC 7517) of public keys, and gives it as JSON. */
export async function readPublicKeys(path: string, shownAs: string): Promise<string> {
  const { holdsPrivateKey, keptKeySet } = await import('../../auth/index.ts')
  const refuse = (reason: string) => new CommandFailure(`Cannot use --jwks-file ${shownAs}: ${reason}`)
  const document = readJson(path, refuse)
  if (holdsPrivateKey(document)) throw refuse('it has a private or secret key; only public keys belong here')
  const kept = keptKeySet(document)
  if (kept === undefined)
    throw refuse('expected a JSON Web Key Set with a key for RS384 (RSA) or ES384 (EC, P-384), and its kid')
  return kept
}

function readJson(path: string, refuse: (reason: string) => CommandFailure): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    // The message of a parser would show a piece of the file.
    throw refuse(error instanceof SyntaxError ? 'it is not JSON' : 'it cannot be read')
  }
}

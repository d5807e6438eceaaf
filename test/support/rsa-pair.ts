import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface Pair {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

const pairs = new Map<number, Pair>()

/** The RSA pair of a number, one for all files of a test run: making one takes longer than most tests. */
export function rsaPair(at = 0): Pair {
  const pair = pairs.get(at) ?? keptPair(at) ?? generateKeyPairSync('rsa', { modulusLength: 2048 })
  pairs.set(at, pair)
  return pair
}

/** The pair in the folder of the test run, made by whichever file asks first. */
function keptPair(at: number): Pair | undefined {
  const folder = process.env.TEST_RUN_FOLDER
  if (folder === undefined) return undefined
  const file = join(folder, `rsa-${at}.pem`)
  if (!existsSync(file)) {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    writeFileSync(`${file}.${process.pid}`, privateKey.export({ type: 'pkcs8', format: 'pem' }), {
      mode: 0o600,
    })
    renameSync(`${file}.${process.pid}`, file)
  }
  const privateKey = createPrivateKey(readFileSync(file))
  return { privateKey, publicKey: createPublicKey(privateKey) }
}

import { compare, hash } from 'bcrypt'
import { runInThreadPool } from '../../turns/index.ts'
import { type Fault, makeFault } from '../base/fault.ts'
import { isCommonPassword } from './common-passwords.ts'
import { isMostly, isPredictable } from './predictable.ts'

export const PASSWORD_COST = 10

/** Bcrypt ignores everything after 72 bytes. */
const MAX_BYTES = 72

/** No password matches it, because it is not a bcrypt hash. */
export const NO_PASSWORD = ''

/** The rules of new passwords, for the forms that take one. */
export function describePasswordRules(minLength: number): string {
  return `At least ${minLength} characters. It may not contain your username, a word of your name, or the name of this service, nor be a password that many people use.`
}

/** Words that an attacker of this server tries first. */
const OWN_WORDS = ['sallyport', 'clinician']

/** What others know about the owner of a password. */
export interface PasswordOwner {
  readonly username: string
  readonly displayName: string
  /** The name of the service. */
  readonly brand: string
  /** Of the settings. */
  readonly minLength: number
}

/** Why a new password is refused; undefined if it is accepted. */
export function findNewPasswordFault(
  password: string,
  { username, displayName, brand, minLength }: PasswordOwner,
): Fault | undefined {
  const characters = splitCharacters(password)
  if (characters.length < minLength) return makeFault('password-too-short', { least: minLength })
  const surplus = countSurplus(characters)
  if (surplus > 0) return makeFault('password-too-long', { surplus, characters: characters.length })
  if (password.includes('\0')) return makeFault('password-with-nul')
  if (contains(password, username) || isMostly(password, username)) return makeFault('password-with-username')
  if (displayName.split(/[^\p{L}]+/u).some(word => contains(password, word)))
    return makeFault('password-with-name')
  const isKnown = isCommonPassword(password) || OWN_WORDS.some(word => contains(password, word))
  if (isKnown) return makeFault('password-common')
  if (contains(keepLetters(password), keepLetters(brand))) return makeFault('password-with-brand')
  return isPredictable(password) ? makeFault('password-sequence') : undefined
}

/** Characters as people count them: a letter with its accents is one. */
function splitCharacters(text: string): readonly string[] {
  return [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment)
}

/** How many characters at the end do not fit. */
function countSurplus(characters: readonly string[]): number {
  let bytes = 0
  const fitting = characters.findIndex(character => {
    bytes += Buffer.byteLength(character)
    return bytes > MAX_BYTES
  })
  return fitting < 0 ? 0 : characters.length - fitting
}

function keepLetters(text: string): string {
  return text.replace(/[^\p{L}\p{N}]/gu, '')
}

/** A short name is in many passwords by chance. */
function contains(password: string, name: string): boolean {
  return name.length > 3 && password.toLowerCase().includes(name.toLowerCase())
}

/** The salt and digest of an unknown password. No known password has it at any cost. */
const UNKNOWN_USER_HASH = '$MwlpsZqe92ktww76iZQ0d.aZhHfuoV1EWpsRUtmjibVcLjkHBJcZ6'

const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/

export function hashPassword(password: string, cost = PASSWORD_COST): Promise<string> {
  return runInThreadPool(() => hash(password, cost))
}

/** The cost of a bcrypt hash (`$2a$`, `$2b$`, `$2y$`), or undefined for anything else. */
export function readCost(passwordHash: string | undefined): number | undefined {
  const cost = BCRYPT.exec(passwordHash ?? '')?.[1]
  return cost === undefined ? undefined : Number(cost)
}

/**
 * Whether the password matches the hash. A mismatch takes as long as a hash of `cost`, even if the hash is cheaper or
 * missing: each step of the cost doubles the work, so the steps from the hash's own cost up to `cost` add up to it.
 */
export async function isPasswordOf(
  passwordHash: string | undefined,
  password: string,
  cost = PASSWORD_COST,
): Promise<boolean> {
  const own = readCost(passwordHash)
  if (passwordHash === undefined || own === undefined) {
    await compareInThread(password, formatUnknownHash(cost))
    return false
  }
  const matches = await compareInThread(password, passwordHash)
  if (matches && Buffer.byteLength(password) <= MAX_BYTES) return true
  for (let step = own; step < cost; step++) await compareInThread(password, formatUnknownHash(step))
  return false
}

/** `$2y$` is what PHP calls `$2b$`. The library knows only the latter. */
function compareInThread(password: string, passwordHash: string): Promise<boolean> {
  return runInThreadPool(() =>
    compare(
      password,
      passwordHash.replace('$2y$', () => '$2b$'),
    ),
  )
}

function formatUnknownHash(cost: number): string {
  return `$2b$${String(cost).padStart(2, '0')}${UNKNOWN_USER_HASH}`
}

/** The reason in the record of users who change their own password, which ends the access of their apps. */
export const PASSWORD_CHANGED = 'Password changed'

import type { KeyRing } from '../keys/key-ring.ts'
import { verifyOwnJwt } from '../keys/own-jwt.ts'
import { Refusal } from '../refusal.ts'
import { type Finding, PROMPTS, type Prompt, type RequestInput } from './request.ts'

/** OIDC Core, 3.1.2.1. */
export function checkPrompt({ parameters }: RequestInput): Finding | Refusal {
  // Without duplicates, because the request is stored.
  const words = [...new Set((parameters.get('prompt') ?? '').split(' ').filter(word => word !== ''))]
  if (!words.every(isPrompt)) return new Refusal('invalid_request', 'The prompt has an unknown value.')
  if (words.includes('none') && words.length > 1)
    return new Refusal('invalid_request', 'The prompt none must be the only value.')
  return { prompts: words }
}

export function checkMaxAge({ parameters }: RequestInput): Finding | Refusal {
  const text = parameters.get('max_age')
  if (text === undefined) return {}
  return /^\d{1,9}$/.test(text)
    ? { maxAge: Number(text) }
    : new Refusal('invalid_request', 'The max_age must be a number of seconds.')
}

/** An ID token of this server, expired or not, that names the user whom the client expects. */
export async function checkIdTokenHint(
  { parameters }: RequestInput,
  keys: KeyRing,
  issuer: string,
): Promise<Finding | Refusal> {
  const hint = parameters.get('id_token_hint')
  if (hint === undefined) return {}
  const { iss, sub } = verifyOwnJwt(hint, 'JWT', await keys.listPublicKeys()) ?? {}
  return iss === issuer && typeof sub === 'string'
    ? { expectedSubject: sub }
    : new Refusal('invalid_request', 'The id_token_hint is not an id_token of this server.')
}

function isPrompt(word: string): word is Prompt {
  return PROMPTS.some(prompt => prompt === word)
}

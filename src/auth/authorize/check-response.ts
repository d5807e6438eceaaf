import { Refusal } from '../refusal.ts'
import type { RequestInput } from './request.ts'

export function checkResponseType({ parameters }: RequestInput): Refusal | undefined {
  const type = parameters.get('response_type')
  if (type === undefined) return new Refusal('invalid_request', 'The parameter response_type is missing.')
  return type === 'code'
    ? undefined
    : new Refusal('unsupported_response_type', 'Only the response_type code is supported.')
}

export function checkResponseMode({ parameters }: RequestInput): Refusal | undefined {
  const mode = parameters.get('response_mode')
  return mode === undefined || mode === 'query'
    ? undefined
    : new Refusal('invalid_request', 'Only the response_mode query is supported.')
}

/** Pieces of JSON for requests that are grown. */

export function repeat(count: number, make: (at: number) => string): readonly string[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

export function nest(depth: number, open: string, close: string, inner = ''): string {
  return open.repeat(depth) + inner + close.repeat(depth)
}

const OF_GROWN = '"subject":{"reference":"Patient/grown"}'

export function condition(more = '"code":{"text":"x"}'): string {
  return `{"resourceType":"Condition",${OF_GROWN},${more}}`
}

export function observation(more: string): string {
  return `{"resourceType":"Observation","status":"final","code":{"text":"x"},${OF_GROWN},${more}}`
}

export function narrative(inner: string, attributes = ''): string {
  const div = `<div xmlns=\\"http://www.w3.org/1999/xhtml\\"${attributes}>${inner}</div>`
  return `"text":{"status":"generated","div":"${div}"}`
}

export function codings(count: number): string {
  const coding = repeat(count, at => `{"system":"urn:x","code":"c${at}"}`)
  return `"category":[{"coding":[${coding.join(',')}]}]`
}

export function notes(count: number): string {
  return `"note":[${repeat(count, () => '{"text":"x"}').join(',')}]`
}

export function created(resource: string, at: number, more = ''): string {
  const request = `{"method":"POST","url":"${JSON.parse(resource).resourceType}"${more}}`
  return `{"fullUrl":"urn:uuid:${at}","resource":${resource},"request":${request}}`
}

/** An entry of a Bundle that patches the same Condition. */
export function patched(operations: readonly string[]): string {
  const patch = `[${operations.join(',')}]`
  const data = Buffer.from(patch).toString('base64')
  const resource = `{"resourceType":"Binary","contentType":"application/json-patch+json","data":"${data}"}`
  return `{"request":{"method":"PATCH","url":"Condition/grown"},"resource":${resource}}`
}

/** So that a case finds the Condition as it was, however often it is sent. */
export const NO_NOTES = '{"op":"add","path":"/note","value":[]}'
export const ADD_NOTE = '{"op":"add","path":"/note/0","value":{"text":"x"}}'

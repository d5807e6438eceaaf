const texts: Readonly<Record<string, string>> = {
  ENOENT: 'There is no such file or folder',
  EACCES: 'Permission is denied',
  EPERM: 'Permission is denied',
  EISDIR: 'It is a folder',
  EMFILE: 'Too many files are open',
  EIO: 'The disk cannot be read',
  ELOOP: 'Links lead in a circle',
  Z_BUF_ERROR: 'The gzip data end early: the file is cut off',
  Z_DATA_ERROR: 'The gzip data are damaged',
}

/** Why a file cannot be read, in words. */
export function failureText(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return texts[code] ?? (code === '' ? 'It cannot be read' : `It cannot be read (${code})`)
}

/** Whether the failure is one of reading; anything else is a bug and is not caught. */
export function isReadFailure(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(E[A-Z]+|Z_[A-Z_]+)$/.test(String(error.code))
}

/** The words of reasons that only records of release 0.3.1 have. The table is closed: nothing names these reasons any more. */
export const OLD_REASONS = {
  'token-header-wrong': {
    sentence: 'The token is not accepted',
    cause:
      'The header of the token is not that of an access token of the auth server: its alg, kid or crit is wrong.',
    remedy:
      'Send the access token of the token response unchanged. After the server has got new keys or a new database, launch the app again.',
  },
  'token-times-wrong': {
    sentence: 'The token is not accepted',
    cause: 'The token has no end, or begins to be valid later.',
    remedy: 'Check the clocks of the servers, and send the access token of the token response unchanged.',
  },
} as const

"""What every room uses: errors, checks, caches, words for numbers, seeds."""
